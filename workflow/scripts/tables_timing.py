"""Seconds per epoch of every cell, from the run records."""

from scaling import tables
from scaling.errors import run_script
from scaling.timing import timing


def main(argv: list[str] | None = None) -> None:
    """Write timing.csv: one row per cell of the grid, its seeds pooled."""
    parser = tables.run_options(__doc__)
    args = parser.parse_args(argv)
    tables.write(timing(tables.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
