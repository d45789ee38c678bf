"""What the pipeline costs a run: recipe `plain` against a plain script of the same lab.

Trains with plain_ddp.py and with train_run.py --recipe plain in turn (script, recipe, script, …)
and prints, for each number of GPUs and batch size per GPU, the seconds of an epoch (median, minimum
and maximum over all but the first epoch of every run) and the ratio recipe / script. The ratio of
one repeat is that of the two runs' medians; given are the median of the repeats and their range.
A run that fails is shown as failed; the exit status is 0 all the same.

    python tests/bench/plain_against_script.py --gpus 1 2 --batch-sizes 128 512
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from scaling.core import environment, files  # noqa: E402
from scaling.core.records.run import RUN  # noqa: E402

CELL = ["gpus", "batch_size"]


def summarise(epochs: pd.DataFrame) -> pd.DataFrame:
    """For each cell: median, min and max of `script` and `recipe` seconds, and of their ratio.

    `epochs` has gpus, batch_size, repeat, script, epoch (from 0, which is the warm-up), seconds. A
    repeat of which one run failed has no ratio.
    """
    measured = epochs[epochs["epoch"] > 0]
    medians = measured.groupby([*CELL, "repeat", "script"])["seconds"].median().unstack()
    medians = medians.reindex(columns=["script", "recipe"])
    ratios = (medians["recipe"] / medians["script"]).groupby(level=CELL)
    by_script = measured.groupby([*CELL, "script"])["seconds"]
    spread = ["median", "min", "max"]
    found = {"ratio": ratios.agg([*spread, "count"])}
    found |= {
        name: by_script.agg(spread).xs(name, level="script") for name in measured.script.unique()
    }
    return pd.concat(found, axis=1)


def script_seconds(args: argparse.Namespace, gpus: int, batch_size: int) -> list[float]:
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


def recipe_seconds(args: argparse.Namespace, gpus: int, batch_size: int) -> list[float]:
    """Seconds per epoch of the recipe, from its run record."""
    options = {
        "--recipe": "plain",
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
        record = RUN.read(path)
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


def train(args: argparse.Namespace) -> pd.DataFrame:
    """Every run of the comparison, one after the other."""
    rows = []
    for gpus, batch_size, repeat in product(args.gpus, args.batch_sizes, range(args.repeats)):
        for script, seconds_of in (("script", script_seconds), ("recipe", recipe_seconds)):
            try:
                seconds, said = seconds_of(args, gpus, batch_size), ""
            except RuntimeError as error:
                seconds, said = [], str(error)
            said = said or " ".join(f"{value:.3f}" for value in seconds)
            print(f"{script}, {gpus} × {batch_size}, repeat {repeat}: {said}", flush=True)
            rows += [(gpus, batch_size, repeat, script, *each) for each in enumerate(seconds)]
    return pd.DataFrame(rows, columns=[*CELL, "repeat", "script", "epoch", "seconds"])


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
        default=ROOT / "benchmarks/plain_against_script.json",
        help="JSON: every epoch of every run (default: benchmarks/plain_against_script.json)",
    )
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("--epochs must be 2 or more, as the first epoch is not measured")
    if not (args.dataset / "images.npz").exists():
        parser.error(f"no images.npz in {args.dataset}: make study makes it, or give --dataset")
    args.device = environment.resolve_device(args.device)
    return args


def main() -> None:
    args = parse()
    described = environment.describe(args.device)
    epochs = train(args)
    print(summarise(epochs).to_string(float_format="%.3f", na_rep="failed"))
    document = {
        "environment": described | {"ended": environment.now()},
        "options": {name: str(value) for name, value in vars(args).items()},
        "epochs": epochs.to_dict("records"),
    }
    files.write_json(args.output, document)
    print(f"Every epoch is in {args.output}")


if __name__ == "__main__":
    main()
