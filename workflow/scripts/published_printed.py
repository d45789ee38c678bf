"""Every figure that a published study printed, beside what its times give."""

import argparse
from pathlib import Path

from scaling import bandwidth, communication, published, speedup, tables, timing
from scaling.errors import run_script
from scaling.printed import printed_against_derived


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
        published.read_study(args.folder, args.study),
        tables.read(args.timing, timing.COLUMNS),
        tables.read(args.speedup, speedup.COLUMNS),
        tables.read(args.communication, communication.COLUMNS),
        tables.read(args.bandwidth, bandwidth.COLUMNS),
    )
    tables.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
