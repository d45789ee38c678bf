"""Bytes, bandwidth and utilization of every multi-GPU cell."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import communication, interconnect, io, timing
from scaling.tables.bandwidth import bandwidth, swept_gradient_bytes


def main(argv: list[str] | None = None) -> None:
    """Write bandwidth.csv: one row per multi-GPU cell and estimate of its communication."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument(
        "--communication", type=Path, required=True, help="communication.csv of the study"
    )
    parser.add_argument(
        "--interconnect", type=Path, help="interconnect.csv of the same machine, where it was swept"
    )
    parser.add_argument(
        "--gradient-bytes",
        type=int,
        help="bytes of all gradients of the model (default: what the interconnect sweep sent)",
    )
    parser.add_argument("--output", type=Path, required=True, help="bandwidth.csv to write")
    args = parser.parse_args(argv)
    columns = interconnect.COLUMNS
    swept = args.interconnect is not None
    sweep = io.read(args.interconnect, columns) if swept else interconnect.interconnect([])
    table = bandwidth(
        io.read(args.timing, timing.COLUMNS),
        io.read(args.communication, communication.COLUMNS),
        sweep,
        swept_gradient_bytes(sweep) if args.gradient_bytes is None else args.gradient_bytes,
    )
    io.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
