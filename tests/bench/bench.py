"""How fast the pipeline itself is, apart from training. Run by `make bench`.

Prints seconds to plan grids of 100, 1,000 and 10,000 cells, seconds of a run that has nothing to
do for 100 and 1,000 finished cells, the demo's wall time with the share that is not training, and
20 trivial cells here and through a Slurm started on this machine, where there is one to start, and
audits of 20,000 rows of random figures, of 200,000 and of 100 submissions. Names of parts (plan,
noop, slurm, demo, audit) as arguments measure these alone. All in a temporary folder, the first
four in a copy of the project there.
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

import numpy as np
import psutil
import yaml

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests/slurm"), str(ROOT / "tests")]

import cluster  # noqa: E402

from scaling.core import grid  # noqa: E402
from scaling.core.records.run import RUN  # noqa: E402

Folders = Iterator[Path]


def copy_of_the_project(folder: Path) -> Path:
    copy = folder / "study"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
    return copy


def seconds_of(command: list[str], folder: Path, most: int = 0) -> float:
    """Wall seconds of a command, which may exit with up to `most`."""
    started = time.perf_counter()
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if not 0 <= finished.returncode <= most:
        sys.exit(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return time.perf_counter() - started


def grid_of(cells: int) -> dict[str, object]:
    """A configuration with `cells` single-GPU runs of synthetic images, of up to 1,000 sizes."""
    config = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    config["dataset"] |= {"source": "synthetic", "train_images": 60, "test_images": 20}
    sizes, seeds = range(1, min(cells, 1000) + 1), range(max(1, cells // 1000))
    config["grid"] |= {"gpus": [1], "batch_sizes": list(sizes), "seeds": list(seeds)}
    return config


def plan_seconds(folder: Path, cells: int) -> float:
    study = copy_of_the_project(folder)
    (study / "bench.yaml").write_text(yaml.safe_dump(grid_of(cells)))
    command = ["snakemake", "--cores", "2", "-n", "--quiet", "all", "--configfile", "bench.yaml"]
    return seconds_of(command, study)


def no_op_seconds(folder: Path, cells: int) -> float:
    """A second run after all cells are finished; their records are copies of one real run."""
    study = copy_of_the_project(folder)
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


def cells_seconds(folder: Path, cells: int, *options: str) -> float:
    """Wall seconds of `cells` runs that may share the machine, when the images are there."""
    study = copy_of_the_project(folder)
    config: Any = grid_of(cells)
    config["machine"]["share"] = True
    (study / "bench.yaml").write_text(yaml.safe_dump(config))
    runs = [str(run.record_path(Path("results/runs"))) for run in grid.of(config)]
    images = "resources/dataset/synthetic/manifest.json"
    configured = ["--quiet", "all", "--configfile", "bench.yaml"]
    seconds_of(["snakemake", "--cores", "2", images, *configured], study)
    return seconds_of(["snakemake", *options, *runs, *configured], study)


def demo_seconds(folder: Path) -> tuple[float, float]:
    """Wall seconds of the demo, and those of its training epochs (the slowest rank of each)."""
    study = copy_of_the_project(folder)
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


def audit_seconds(folder: Path, texts: list[str]) -> float:
    """Seconds of the audit of a pile, its pages included."""
    from examples.grader.published_study import write

    for number, text in enumerate(texts):
        write(folder / f"pile/{number}", text)
    scripts = f"PYTHONPATH={ROOT / 'workflow/scripts'}"
    command = ["env", scripts, sys.executable, "-m", "grader.audit_studies", "pile/*"]
    return seconds_of([*command, "--output", "audit.html"], folder, most=3)


def audit(folders: Folders) -> None:
    from examples.grader.planted import planted
    from examples.grader.published_study import HEADER

    random = np.random.default_rng(1)
    cells = {
        "20,000 rows, 10 numbers of GPUs": [(n, b) for n in range(1, 11) for b in range(1, 2001)],
        "20,000 rows, each its number of GPUs": [(n, 1) for n in range(1, 20_001)],
        "200,000 rows": [(n, b) for n in range(1, 11) for b in range(1, 20_001)],
    }
    for name, keys in cells.items():
        figures = random.uniform(1, 60, (len(keys), 7))
        rows = (
            f"one,ddp,resnet18-cifar,11173962,{n},{b},ok,{','.join(f'{x:.2f}' for x in line)},,,"
            for (n, b), line in zip(keys, figures, strict=True)
        )
        seconds = audit_seconds(next(folders), ["\n".join([HEADER, *rows])])
        print(f"audit of {name}: {seconds:.1f} s", flush=True)
    pile = [planted(number, seed=1).submission.text for number in range(100)]
    print(f"audit of 100 submissions: {audit_seconds(next(folders), pile):.1f} s", flush=True)


PARTS = {part.__name__: part for part in (plan, noop, slurm, demo, audit)}


def new_folders(scratch: str) -> Folders:
    for number in itertools.count():
        path = Path(scratch, str(number))
        path.mkdir()
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" or ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    unknown = set(chosen) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    print(f"{psutil.cpu_count()} cores, Python {sys.version.split()[0]}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folders = new_folders(scratch)
        for part in chosen:
            PARTS[part](folders)


if __name__ == "__main__":
    main()
