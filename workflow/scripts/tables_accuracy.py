"""Loss and accuracy of every run, epoch by epoch, from the run records."""

from scaling import tables
from scaling.accuracy import accuracy
from scaling.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write accuracy.csv: one row per run and epoch."""
    parser = tables.run_options(__doc__)
    parser.add_argument("--study", required=True, help="the study's name, for its own column")
    args = parser.parse_args(argv)
    runs = tables.read_runs(args.cells, args.runs, args.partial)
    tables.write(accuracy(runs, args.study), args.output)


if __name__ == "__main__":
    run_script(main)
