"""Measure how fast the pipeline itself is, apart from training. `make bench` runs this.

It prints the seconds for planning grids of 100, 1,000 and 10,000 runs, the seconds of a start
without work for 100 and 1,000 finished runs, and the demo's wall time. Arguments (plan, noop, demo)
select parts. All of it runs in copies of the project in a temporary folder.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from scaling.core import grid
from scaling.core.records.run import RUN
from small_study import TINY, Study


def seconds_of(study: Study, *options: str) -> float:
    """Return the wall seconds of Snakemake with the configuration of `study`."""
    command = ["snakemake", "--cores", "2", *options, "--quiet", "all", "--configfile", "tiny.yaml"]
    started = time.perf_counter()
    finished = subprocess.run(command, cwd=study.folder, capture_output=True, text=True)
    if finished.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return time.perf_counter() - started


def cells_of(cells: int) -> dict[str, object]:
    """Return changes of the demo to `cells` runs on one GPU, with synthetic images and seeds."""
    seeds, sizes = range(min(cells, 1000)), range(10, 10 + max(1, cells // 1000))
    found = {key: value for key, value in TINY.items() if key.startswith("dataset.")}
    found |= {"grid.gpus": [1], "grid.batch_sizes": [*sizes], "grid.seeds": [*seeds]}
    return found | {"machine.share": True}


def plan(folder: Path) -> None:
    for cells in (100, 1_000, 10_000):
        study = Study(folder / str(cells), cells_of(cells))
        print(f"plan {cells:,} cells: {seconds_of(study, '-n'):.1f} s", flush=True)


def noop(folder: Path) -> None:
    """Print the seconds of a start without work. The records are copies of one real record."""
    for cells in (100, 1_000):
        study = Study(folder / str(cells), cells_of(1))
        seconds_of(study)
        record = RUN.read(grid.of(study.config)[0].record_path(study.folder / "results/runs"))
        study.configure(cells_of(cells))
        for run in grid.of(study.config):
            RUN.write(run.record_path(study.folder / "results/runs"), record | {"cell": vars(run)})
        seconds_of(study, "--touch")
        seconds_of(study)
        print(f"no-op, {cells:,} finished cells: {seconds_of(study):.1f} s", flush=True)


def demo(folder: Path) -> None:
    print(f"demo: {seconds_of(Study(folder, {})):.0f} s", flush=True)


if __name__ == "__main__":
    print(f"{psutil.cpu_count()} cores, Python {sys.version.split()[0]}", flush=True)
    parts = {part.__name__: part for part in (plan, noop, demo)}
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or parts:
            parts[name](Path(scratch) / name)
