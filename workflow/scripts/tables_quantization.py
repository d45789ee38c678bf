"""Write the tables of quantization from its records: variants, layers, pairs, backends, ResNet-18.

A table that no record belongs to has no rows.
"""

import argparse
from pathlib import Path

from scaling.core import quantization_records as records
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.experiments import quantization, quantization_backends


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="*", default=[], help="of variants, by quantize_evaluate.py")
    add("--peers", type=Path, nargs="*", default=[], help="of backends, by quantize_peers.py")
    add("--stages", type=Path, nargs="*", default=[], help="of ResNet-18, by quantize_evaluate.py")
    add("--output", type=Path, required=True, help="the folder for the five tables")
    options = parser.parse_args(argv)
    variants = records.read_variants(options.records)
    tables = {
        "quantization": quantization.variants(variants),
        "quantization_layers": quantization.layers(variants),
        "quantization_paired": quantization.paired(variants),
        "quantization_peers": quantization_backends.backends(records.read_backends(options.peers)),
        "quantization_resnet": quantization_backends.resnet(records.read_resnets(options.stages)),
    }
    for name, table in tables.items():
        schema.write(name, table, options.output / f"{name}.csv")


if __name__ == "__main__":
    run_script(main)
