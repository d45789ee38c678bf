"""Where, when and with what every run was made, from the run records."""

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.provenance import provenance


def main(argv: list[str] | None = None) -> None:
    """Write provenance.csv: one row per run."""
    parser = io.run_options(__doc__)
    args = parser.parse_args(argv)
    io.write(provenance(io.read_runs(args.cells, args.runs, args.partial)), args.output)


if __name__ == "__main__":
    run_script(main)
