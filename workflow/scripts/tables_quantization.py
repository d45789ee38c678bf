"""Write the tables of quantization from its records: variants, layers, pairs, backends, ONNX files…

A table that no record belongs to has no rows.
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.records.quantization import BACKENDS, EXPORT, STAGED, VARIANT, read
from scaling.tables import schema
from scaling.tables.experiments import quantization, quantization_backends


@command_line.script
def main(
    tables: Path,
    records: tuple[Path, ...] = (),
    peers: tuple[Path, ...] = (),
    stages: tuple[Path, ...] = (),
    exports: tuple[Path, ...] = (),
) -> None:
    variants, backends = read(VARIANT, records), read(BACKENDS, peers)
    staged = read(STAGED, stages)
    found = {
        "quantization": quantization.variants(variants),
        "quantization_layers": quantization.layers(variants),
        "quantization_histograms": quantization.histograms(variants),
        "quantization_paired": quantization.paired(variants),
        "quantization_peers": quantization_backends.backends(backends),
        "quantization_resnet": quantization_backends.resnet(staged),
        "quantization_gpu": quantization_backends.gpu(staged),
        "quantization_export": quantization_backends.exports(read(EXPORT, exports)),
    }
    schema.write_all(found, tables)
