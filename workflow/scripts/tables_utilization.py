"""Which share of the measured matrix product rate every cell uses."""

from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import communication, io, limits, timing
from scaling.tables.utilization import costs, utilization


def main(argv: list[str] | None = None) -> None:
    """Write utilization.csv: one row per cell."""
    parser = io.run_options(__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument(
        "--communication", type=Path, required=True, help="communication.csv of the study"
    )
    parser.add_argument("--peaks", type=Path, required=True, help="peaks.csv of the machine")
    args = parser.parse_args(argv)
    table = utilization(
        io.read(args.timing, timing.COLUMNS),
        io.read(args.communication, communication.COLUMNS),
        io.read(args.peaks, limits.COLUMNS),
        costs(io.read_runs(args.cells, args.runs, args.partial)),
    )
    io.write(table, args.output)


if __name__ == "__main__":
    run_script(main)
