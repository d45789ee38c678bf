"""What the instruments of each cell say of its communication and of its device's time."""

from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import io
from scaling.tables.device_time import device_time
from scaling.tables.readings import readings


def main(argv: list[str] | None = None) -> None:
    """Write readings.csv, a row per multi-GPU cell and instrument, and device_time.csv."""
    parser = io.run_options(__doc__)
    parser.add_argument("--device-time", type=Path, required=True, help="device_time.csv to write")
    args = parser.parse_args(argv)
    runs = io.read_runs(args.cells, args.runs, args.partial)
    io.write(readings(runs), args.output)
    io.write(device_time(runs), args.device_time)


if __name__ == "__main__":
    run_script(main)
