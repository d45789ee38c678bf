"""What the pipeline costs a run: recipe `course` against a plain script of the same lab.

Trains with plain_ddp.py and with train_run.py --recipe course in turn (plain, course, plain, …) and
prints, for each number of GPUs and batch size per GPU, the seconds of an epoch (median, minimum and
maximum over all but the first epoch of every run) and the ratio course / plain. The ratio of one
repeat is that of the two runs' medians; given are the median of the repeats and their range.
A run that fails is shown as failed; the exit status is 0 all the same.

    python tests/bench/course_against_plain.py --gpus 1 2 --batch-sizes 128 512
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from scaling.core import environment, files  # noqa: E402
from scaling.core.records import read_record  # noqa: E402


@dataclass(frozen=True)
class Run:
    """One run of one of the two scripts: the seconds of its epochs, the first being the warm-up.

    An epoch's seconds are its slowest process's. `error` says why there are none.
    """

    script: str
    gpus: int
    batch_size: int
    repeat: int
    seconds: list[float]
    error: str = ""


@dataclass(frozen=True)
class Spread:
    """The median of some values, their minimum and maximum, and how many there are."""

    median: float
    minimum: float
    maximum: float
    count: int

    @classmethod
    def of(cls, values: list[float]) -> "Spread | None":
        """None of no values."""
        return cls(median(values), min(values), max(values), len(values)) if values else None

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.minimum:.3f}–{self.maximum:.3f})"


@dataclass(frozen=True)
class Comparison:
    """Seconds per epoch of both scripts in one cell, and the ratio course / plain."""

    gpus: int
    batch_size: int
    plain: Spread | None
    course: Spread | None
    ratio: Spread | None


def summarise(runs: list[Run]) -> list[Comparison]:
    """One comparison per number of GPUs and batch size, in the order of the runs.

    A repeat of which one run failed has no ratio.
    """
    comparisons = []
    for cell in dict.fromkeys((run.gpus, run.batch_size) for run in runs):
        measured = {
            (run.script, run.repeat): run.seconds[1:]
            for run in runs
            if (run.gpus, run.batch_size) == cell and len(run.seconds) > 1
        }
        pooled = {
            name: Spread.of(
                [s for (script, _), own in measured.items() if script == name for s in own]
            )
            for name in ("plain", "course")
        }
        ratios = [
            median(seconds) / median(measured["plain", repeat])
            for (script, repeat), seconds in measured.items()
            if script == "course" and ("plain", repeat) in measured
        ]
        comparisons.append(Comparison(*cell, **pooled, ratio=Spread.of(ratios)))
    return comparisons


def table(comparisons: list[Comparison]) -> str:
    """The comparisons as aligned text."""
    lines = [("GPUs", "batch", "plain, s per epoch", "course, s per epoch", "course / plain", "n")]
    for row in comparisons:
        spreads = [str(spread or "failed") for spread in (row.plain, row.course, row.ratio)]
        repeats = row.ratio.count if row.ratio else 0
        lines.append((str(row.gpus), str(row.batch_size), *spreads, str(repeats)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )


def plain_seconds(args: argparse.Namespace, gpus: int, batch_size: int) -> list[float]:
    """Seconds per epoch of the plain script."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
    options = {
        "--dataset": args.dataset / "images.npz",
        "--batch-size": batch_size,
        "--epochs": args.epochs,
        "--device": args.device,
        "--width": args.width,
    }
    printed = output_of([*launcher, str(ROOT / "tests/bench/plain_ddp.py"), *flat(options)])
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [line["seconds"] for line in lines if "epoch" in line]


def course_seconds(args: argparse.Namespace, gpus: int, batch_size: int) -> list[float]:
    """Seconds per epoch of the recipe, from its run record."""
    options = {
        "--recipe": "course",
        "--strategy": "ddp",
        "--gpus": gpus,
        "--batch-size": batch_size,
        "--dataset": args.dataset / "images.npz",
        "--manifest": args.dataset / "manifest.json",
        "--device": args.device,
        "--model-width": args.width,
        "--warmup-epochs": 1,
        "--measured-epochs": args.epochs - 1,
        "--instrumented-iterations": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        script = str(ROOT / "workflow/scripts/train_run.py")
        output_of([script, *flat(options | {"--output": path})])
        record = read_record(path)
    if record["status"] not in ("ok", "diverged"):
        raise RuntimeError(f"{record['status']}: {record['message']}")
    slowest: dict[int, float] = {}
    for row in record["epochs"]:
        slowest[row["epoch"]] = max(row["seconds"], slowest.get(row["epoch"], 0))
    return list(slowest.values())


def flat(options: dict[str, object]) -> list[str]:
    return [str(word) for option in options.items() for word in option]


def output_of(arguments: list[str]) -> str:
    """What Python prints when run with these arguments; its errors go to ours."""
    # As the recipe's own launcher sets them, so that both scripts have the same.
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    finished = subprocess.run(
        [sys.executable, *arguments], env=variables, stdout=subprocess.PIPE, text=True
    )
    if finished.returncode != 0:
        raise RuntimeError(f"exit status {finished.returncode}, the messages above say why")
    return finished.stdout


def train(args: argparse.Namespace) -> list[Run]:
    """Every run of the comparison, one after the other."""
    runs = []
    for gpus, batch_size, repeat in product(args.gpus, args.batch_sizes, range(args.repeats)):
        for script, seconds_of in (("plain", plain_seconds), ("course", course_seconds)):
            try:
                run = Run(script, gpus, batch_size, repeat, seconds_of(args, gpus, batch_size))
            except RuntimeError as error:
                run = Run(script, gpus, batch_size, repeat, [], str(error))
            epochs = " ".join(f"{value:.3f}" for value in run.seconds)
            print(f"{script}, {gpus} × {batch_size}, repeat {repeat}: {run.error or epochs}")
            sys.stdout.flush()
            runs.append(run)
    return runs


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--dataset",
        type=Path,
        default=ROOT / "resources/dataset/cifar10",
        help="folder of images.npz and manifest.json (default: resources/dataset/cifar10)",
    )
    add("--gpus", type=int, nargs="+", default=[1], help="default: 1; on a CPU, processes")
    add("--batch-sizes", type=int, nargs="+", default=[512], help="per GPU (default: 512)")
    add("--repeats", type=int, default=3, help="runs of each script in each cell (default: 3)")
    add("--epochs", type=int, default=4, help="of each run, the first untimed (default: 4)")
    add("--width", type=int, default=64, help="channels of ResNet-18's first stage (default: 64)")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add(
        "--output",
        type=Path,
        default=ROOT / "benchmarks/course_against_plain.json",
        help="JSON: every epoch of every run (default: benchmarks/course_against_plain.json)",
    )
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("--epochs must be 2 or more, as the first epoch is not measured")
    args.device = environment.resolve_device(args.device)
    return args


def main() -> None:
    args = parse()
    described = environment.describe(args.device)
    runs = train(args)
    comparisons = summarise(runs)
    print(table(comparisons))
    files.write_json(
        args.output,
        {
            "environment": described | {"ended": environment.now()},
            "options": {name: str(value) for name, value in vars(args).items()},
            "runs": [asdict(run) for run in runs],
            "comparisons": [asdict(row) for row in comparisons],
        },
    )
    print(f"Every epoch is in {args.output}")


if __name__ == "__main__":
    main()
