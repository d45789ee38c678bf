"""The tables of quantization from its records: variants, layers, pairs, backends, ONNX files."""

from pathlib import Path

from scaling.core import command_line
from scaling.core.records.quantization import BACKENDS, EXPORT, STAGED, VARIANT, read
from scaling.tables import schema
from scaling.tables.experiments import quantization, quantization_backends

OF_VARIANTS = {
    "quantization": quantization.variants,
    "quantization_layers": quantization.layers,
    "quantization_histograms": quantization.histograms,
    "quantization_paired": quantization.paired,
}
OF_BACKENDS = {"quantization_peers": quantization_backends.backends}
OF_STAGES = {
    "quantization_resnet": quantization_backends.resnet,
    "quantization_gpu": quantization_backends.gpu,
}
OF_EXPORTS = {"quantization_export": quantization_backends.exports}


@command_line.script
def main(
    tables: Path,
    records: tuple[Path, ...] = (),
    peers: tuple[Path, ...] = (),
    stages: tuple[Path, ...] = (),
    exports: tuple[Path, ...] = (),
) -> None:
    """Write the tables of each kind of record that there is."""
    for kind, paths, makers in (
        (VARIANT, records, OF_VARIANTS),
        (BACKENDS, peers, OF_BACKENDS),
        (STAGED, stages, OF_STAGES),
        (EXPORT, exports, OF_EXPORTS),
    ):
        if paths:
            documents = read(kind, paths)
            schema.write_all({name: make(documents) for name, make in makers.items()}, tables)
