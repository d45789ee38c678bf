"""Tables of the runs: times, accuracy, start-up, provenance and what instruments measured."""

import argparse
import json
from pathlib import Path

from scaling.core import grid
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.accuracy import accuracy
from scaling.tables.measurements import costs, device_time, readings
from scaling.tables.runs import provenance, read_runs
from scaling.tables.timing import startup, timing

MAKERS = {
    "timing": timing,
    "startup": startup,
    "readings": readings,
    "device_time": device_time,
    "costs": costs,
    "provenance": provenance,
}


def main(argv: list[str] | None = None) -> None:
    """Write cells.csv, the runs of the grid, and the tables that follow from their records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--grid",
        type=json.loads,
        required=True,
        help="JSON: recipes, strategies, gpus, batch_sizes, seeds",
    )
    parser.add_argument("--runs", type=Path, required=True, help="folder of the run records")
    parser.add_argument("--partial", action="store_true", help="accept runs without a record")
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument("--tables", type=Path, required=True, help="folder of all tables")
    parser.add_argument("--cells", type=Path, required=True, help="cells.csv to write")
    args = parser.parse_args(argv)
    cells = grid.expand(**args.grid)
    grid.write_table(cells, args.cells)
    runs = read_runs(cells, args.runs, args.partial)
    tables = {name: make(runs) for name, make in MAKERS.items()}
    tables["accuracy"] = accuracy(runs, args.study)
    schema.write_all(tables, args.tables, args.study)


if __name__ == "__main__":
    run_script(main)
