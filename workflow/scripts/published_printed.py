"""Every figure that a published study printed, beside what its times give."""

import argparse
from pathlib import Path

from scaling.core.errors import run_script
from scaling.published import study
from scaling.published.printed import printed_against_derived
from scaling.tables import bandwidth, communication, io, speedup, timing


def main(argv: list[str] | None = None) -> None:
    """Write printed.csv: one row per printed figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder with a timings.csv")
    parser.add_argument("--study", required=True, help="name of the study there")
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--speedup", type=Path, required=True, help="speedup.csv of the study")
    parser.add_argument(
        "--communication", type=Path, required=True, help="communication.csv of the study"
    )
    parser.add_argument("--bandwidth", type=Path, required=True, help="bandwidth.csv of the study")
    parser.add_argument("--output", type=Path, required=True, help="printed.csv to write")
    args = parser.parse_args(argv)
    table = printed_against_derived(
        study.read_study(args.folder, args.study),
        io.read(args.timing, timing.COLUMNS),
        io.read(args.speedup, speedup.COLUMNS),
        io.read(args.communication, communication.COLUMNS),
        io.read(args.bandwidth, bandwidth.COLUMNS),
    )
    io.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
