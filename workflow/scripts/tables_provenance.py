"""Where, when and with what every run was made, from the run records."""

from scaling import tables
from scaling.errors import run_script
from scaling.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    """Write provenance.csv: one row per run."""
    parser = tables.run_options(__doc__)
    args = parser.parse_args(argv)
    tables.write(provenance(tables.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
