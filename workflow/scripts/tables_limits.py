"""Tables of the machine's limits: all-reduces by message size, matrix products, copies."""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.limits import fit, interconnect, peaks, topology


def main(argv: list[str] | None = None) -> None:
    """Write interconnect.csv, interconnect_fit.csv, peaks.csv and topology.txt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sweeps", type=Path, nargs="*", required=True, help="sweep.json of each number of GPUs"
    )
    parser.add_argument("--peaks", type=Path, required=True, help="peaks.json of the machine")
    parser.add_argument("--tables", type=Path, required=True, help="folder to write to")
    args = parser.parse_args(argv)
    swept = interconnect([files.read_json(path) for path in args.sweeps])
    document = files.read_json(args.peaks)
    tables = {"interconnect": swept, "interconnect_fit": fit(swept), "peaks": peaks(document)}
    schema.write_all(tables, args.tables)
    # How the GPUs are connected, as nvidia-smi prints it.
    files.write_text(args.tables / "topology.txt", topology(document))


if __name__ == "__main__":
    run_script(main)
