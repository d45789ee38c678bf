"""What each multi-GPU cell's instruments say of its communication, from the run records."""

from scaling import tables
from scaling.errors import run_script
from scaling.readings import readings


def main(argv: list[str] | None = None) -> None:
    """Write readings.csv: one row per multi-GPU cell and instrument."""
    parser = tables.run_options(__doc__)
    args = parser.parse_args(argv)
    runs = tables.read_runs(args.cells, args.runs, args.partial)
    tables.write(readings(runs), args.output)


if __name__ == "__main__":
    run_script(main)
