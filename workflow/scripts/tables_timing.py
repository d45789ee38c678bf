"""Seconds per epoch of every cell, from the run records."""

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.timing import timing


def main(argv: list[str] | None = None) -> None:
    """Write timing.csv: one row per cell of the grid, its seeds pooled."""
    parser = io.run_options(__doc__)
    args = parser.parse_args(argv)
    io.write(timing(io.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
