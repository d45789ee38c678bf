"""How fast the pipeline itself is, apart from training. Run by `make bench`.

Prints seconds to plan grids of 100, 1,000 and 10,000 cells, seconds of a run that has nothing to
do for 100 and 1,000 finished cells, the demo's wall time with the share that is not training, and
20 trivial cells here and through a Slurm started on this machine, where there is one to start.
Names of parts (plan, noop, slurm, demo) as arguments measure these alone. All in copies of the
project in a temporary folder.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests/slurm")]

import cluster  # noqa: E402

from scaling.core import grid  # noqa: E402
from scaling.core.records.run import RUN  # noqa: E402

Folders = Iterator[Path]


def copies_of_the_project(scratch: Path) -> Folders:
    for number in itertools.count():
        copy = scratch / str(number)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        yield copy


def seconds_of(command: list[str], folder: Path) -> float:
    """Wall seconds of a command."""
    started = time.perf_counter()
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if finished.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return time.perf_counter() - started


def grid_of(cells: int) -> dict[str, object]:
    """A configuration with `cells` single-GPU runs of synthetic images, of up to 1,000 sizes."""
    config = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    config["dataset"] |= {"source": "synthetic", "train_images": 60, "test_images": 20}
    sizes, seeds = range(1, min(cells, 1000) + 1), range(max(1, cells // 1000))
    config["grid"] |= {"gpus": [1], "batch_sizes": list(sizes), "seeds": list(seeds)}
    return config


def plan_seconds(study: Path, cells: int) -> float:
    (study / "bench.yaml").write_text(yaml.safe_dump(grid_of(cells)))
    command = ["snakemake", "--cores", "2", "-n", "--quiet", "all", "--configfile", "bench.yaml"]
    return seconds_of(command, study)


def no_op_seconds(study: Path, cells: int) -> float:
    """A second run after all cells are finished; their records are copies of one real run."""
    config = grid_of(1)
    command = ["snakemake", "--cores", "2", "--quiet", "all", "--configfile", "bench.yaml"]
    (study / "bench.yaml").write_text(yaml.safe_dump(config))
    seconds_of(command, study)
    first = grid.of(config)[0].record_path(study / "results/runs")
    record = RUN.read(first)
    config = grid_of(cells)
    for run in grid.of(config):
        record["cell"] = vars(run)
        RUN.write(run.record_path(study / "results/runs"), record)
    (study / "bench.yaml").write_text(yaml.safe_dump(config))
    seconds_of([*command, "--touch"], study)
    seconds_of(command, study)
    return seconds_of(command, study)


def cells_seconds(study: Path, cells: int, *options: str) -> float:
    """Wall seconds of `cells` runs that may share the machine, when the images are there."""
    config: Any = grid_of(cells)
    config["machine"]["share"] = True
    (study / "bench.yaml").write_text(yaml.safe_dump(config))
    runs = [str(run.record_path(Path("results/runs"))) for run in grid.of(config)]
    images = "resources/dataset/synthetic/manifest.json"
    configured = ["--quiet", "all", "--configfile", "bench.yaml"]
    seconds_of(["snakemake", "--cores", "2", images, *configured], study)
    return seconds_of(["snakemake", *options, *runs, *configured], study)


def demo_seconds(study: Path) -> tuple[float, float]:
    """Wall seconds of the demo, and those of its training epochs (the slowest rank of each)."""
    total = seconds_of(["snakemake", "--cores", "2", "--configfile", "config/demo.yaml"], study)
    training = 0.0
    for path in study.glob("results/runs/**/run.json"):
        epochs: dict[int, float] = {}
        for row in json.loads(path.read_text())["epochs"]:
            epochs[row["epoch"]] = max(row["seconds"], epochs.get(row["epoch"], 0))
        training += sum(epochs.values())
    return total, training


def plan(folders: Folders) -> None:
    for cells in (100, 1_000, 10_000):
        print(f"plan {cells:,} cells: {plan_seconds(next(folders), cells):.1f} s", flush=True)


def noop(folders: Folders) -> None:
    for cells in (100, 1_000):
        seconds = no_op_seconds(next(folders), cells)
        print(f"no-op, {cells:,} finished cells: {seconds:.1f} s", flush=True)


# How Snakemake is told to run cells through Slurm; the first is as concurrent as `--cores 2` here.
THROUGH_SLURM = {
    "two at a time": ["--jobs", "2"],
    "two at a time, first look after 1 s": [
        "--jobs=2",
        "--slurm-study-init-seconds-before-status-checks=1",
    ],
    "all at once": [],
    "as one job array": ["--slurm-study-array-jobs", "train_run"],
}


def slurm(folders: Folders) -> None:
    local = cells_seconds(next(folders), 20, "--cores", "2")
    print(f"20 trivial cells, two at a time: {local:.0f} s", flush=True)
    reason = cluster.reason_not_to_start()
    if reason:
        print(f"20 trivial cells through Slurm: not measured, {reason}")
        return
    for how, options in THROUGH_SLURM.items():
        with cluster.cluster():
            seconds = cells_seconds(next(folders), 20, "--profile", "slurm", *options)
        print(f"20 trivial cells through Slurm, {how}: {seconds:.0f} s", flush=True)


def demo(folders: Folders) -> None:
    total, training = demo_seconds(next(folders))
    share = 100 * (1 - training / total)
    print(f"demo: {total:.0f} s, of which {share:.0f} % are not training epochs", flush=True)


PARTS = {part.__name__: part for part in (plan, noop, slurm, demo)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS)
    chosen = parser.parse_args().parts or [*PARTS]
    print(f"{psutil.cpu_count()} cores, Python {sys.version.split()[0]}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folders = copies_of_the_project(Path(scratch))
        for part in chosen:
            PARTS[part](folders)


if __name__ == "__main__":
    main()
