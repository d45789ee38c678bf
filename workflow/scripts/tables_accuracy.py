"""Loss and accuracy of every run, epoch by epoch, from the run records."""

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.accuracy import accuracy


def main(argv: list[str] | None = None) -> None:
    """Write accuracy.csv: one row per run and epoch."""
    parser = io.run_options(__doc__)
    parser.add_argument("--study", required=True, help="the study's name, for its own column")
    args = parser.parse_args(argv)
    runs = io.read_runs(args.cells, args.runs, args.partial)
    io.write(accuracy(runs, args.study), args.output)


if __name__ == "__main__":
    run_script(main)
