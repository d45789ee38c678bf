"""What every cell costs besides its measured epochs, from the run records."""

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.startup import startup


def main(argv: list[str] | None = None) -> None:
    """Write startup.csv: one row per cell of the grid, its median seed."""
    parser = io.run_options(__doc__)
    args = parser.parse_args(argv)
    io.write(startup(io.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
