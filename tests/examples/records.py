"""Records made by hand, of runs and techniques, and timing tables."""

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core.grid import Cell
from scaling.core.records.run import RUN, RunRecord, TechniqueRecord
from scaling.core.statistics import settling
from scaling.core.training_options import LargeBatches, Sgd
from scaling.registry.update_rule import Technique, gpus_of
from scaling.tables import schema

FLAGSHIP = Path(__file__).parents[2] / "studies/h100x2"
STORED = FLAGSHIP / "runs/recipe~plain/strategy~single/gpus~1/batch_size~128/seed~0/run.json"
TRAIN_IMAGES = 50_000
GRADIENT_BYTES = 44_695_848


def epoch(
    number: int, seconds: float, loader_seconds: float = 0.0, **changes: Any
) -> dict[str, Any]:
    """One epoch as one rank saw it; the defaults are 50,000 images at batch 128 on one GPU."""
    made = {"epoch": number, "rank": 0, "role": "measured", "iterations": 391}
    made |= {"seconds": seconds, "loader_seconds": loader_seconds, "samples": TRAIN_IMAGES}
    made |= {"train_loss": 1.5, "train_accuracy": 0.5, "power_capped_seconds": None}
    return {**made, "gpu_readings": [], **changes}


def epochs(cell: Cell, *seconds: float) -> list[dict[str, Any]]:
    """Measured epochs of so many seconds, each of all 50,000 images, by the ranks of DDP."""
    own = -(-TRAIN_IMAGES // cell.gpus)
    shares = {"samples": own, "iterations": -(-own // cell.batch_size)}
    return [
        epoch(number, each, rank=rank, **shares)
        for number, each in enumerate(seconds, start=1)
        for rank in range(cell.gpus)
    ]


def record(cell: Cell, epochs: list[dict[str, Any]], **changes: Any) -> RunRecord:
    """The record of one run: a stored one's, with these epochs and without instruments."""
    found = RUN.read(STORED)
    numbers = Counter(row["role"] for row in epochs if row["rank"] == 0)
    found["model"]["parameters_sha256"] = ["0" * 64] * len({row["rank"] for row in epochs})
    found["model"] |= dict.fromkeys(("flops_per_image", "activation_bytes_per_image"))
    found["training"] |= {
        **{"engine": {"tuned": "resident"}.get(cell.recipe, "eager"), "recipe_applied": None},
        **{"warmup_epochs": numbers["warmup"], "measured_epochs": min(3, numbers["measured"]) or 3},
    }
    found["communication"] |= {"backend": "nccl", "readings": []}
    return found | {
        **{"cell": asdict(cell), "epochs": epochs, "settling": settling(epochs)},
        **{"status": "ok", "message": None, "evaluation": None, "environment": {"hosts": ["vm"]}},
        "memory": {"kind": "device", "peak_bytes": [], "capacity_bytes": None},
        **{"in_memory": [], "device_time": [], "startup": None, "run_seconds": None},
        **changes,
    }


def save(folder: Path, made: RunRecord) -> None:
    """Put `made` where the tables look for it below the folder of run records."""
    RUN.write(Cell(**made["cell"]).record_path(folder), made)


def timing_row(
    gpus: int,
    batch_size: int,
    seconds: float = math.nan,
    *,
    spread: float = 0.0,
    loader_seconds: float = 0.0,
    runs: float = 3,
    **cell: str,
) -> dict[str, Any]:
    """One row of timing.csv: `seconds`, give or take `spread`; without seconds, an empty row.

    Its training takes as long, less `loader_seconds`; the `cell` is plain/ddp if not given.
    """
    timed, training = 0 * seconds, seconds - loader_seconds
    return {
        **{"recipe": "plain", "strategy": "ddp" if gpus > 1 else "", "gpus": gpus},
        "batch_size": batch_size,
        **{"status": "ok", "message": "", "loader_seconds": loader_seconds + timed},
        **{"epoch_seconds": seconds, "training_seconds": training},
        **{"epoch_seconds_low": seconds - spread, "epoch_seconds_high": seconds + spread},
        **{"training_seconds_low": training - spread, "training_seconds_high": training + spread},
        **{"runs": runs + timed, "count": 3 + timed, "samples": TRAIN_IMAGES + timed},
        "iterations": math.ceil(TRAIN_IMAGES / (gpus * batch_size)) + timed,
        **cell,
    }


def runs_of(timing: pd.DataFrame) -> pd.DataFrame:
    """provenance.csv of a run of each row at its time, and of two at its ends if it has several."""
    ends = [("_low", timing["runs"] > 1), ("", timing["runs"] > 0), ("_high", timing["runs"] > 1)]
    found = [
        timing[there].assign(
            epoch_seconds=timing[f"epoch_seconds{end}"],
            training_seconds=timing[f"training_seconds{end}"],
            **{"seed": 0, "repeat": number, "machine": "m", "code": "c", "started": "2026"},
        )
        for number, (end, there) in enumerate(ends)
    ]
    return schema.arrange("provenance", pd.concat(found))


def timing_table(*rows: dict[str, Any]) -> pd.DataFrame:
    """timing.csv with these rows."""
    return schema.frame("timing", rows)


def full_training(gpus: int, seed: int, seconds: float, accuracy: float) -> RunRecord:
    """A training of four epochs by two GPUs at most; each GPU takes 100 J an epoch."""
    epochs = [
        epoch(number, seconds / 4 - rank / 100, rank=rank, gpu_readings=[{"energy_joules": 100.0}])
        for number in (1, 2, 3, 4)
        for rank in range(gpus)
    ]
    cell = Cell("tuned", "ddp", gpus, 1024 // gpus, seed)
    found = record(cell, epochs, evaluation={"test_accuracy": accuracy})
    return found | {"run_seconds": seconds + 20}


OPTIONS = LargeBatches(epochs=2, factors=[0.25, 1.0])
TRAINING = {**Sgd().model_dump(), **OPTIONS.model_dump(), "precision": "bf16"}
MARGIN = 0.02


def technique_run(
    accuracy: float | None, seed: int = 0, factor: float = 1.0, epochs: int = 2, **more: Any
) -> dict[str, Any]:
    """A run of so many epochs of 5 updates each that ends with this test accuracy.

    Before the last epoch it was 0.2 lower; training accuracy is 0.1 higher. None: the loss was not
    finite.
    """

    def row(number: int) -> dict[str, Any]:
        value = (accuracy or 0.0) - 0.2 * (number < epochs)
        found = {"train_loss": 2 - value, "train_accuracy": value + 0.1}
        found |= {"test_loss": 3 - value, "test_accuracy": value}
        metrics = dict.fromkeys(found) if accuracy is None else found
        return {"epoch": number, "updates": 5 * number, **metrics}

    run: dict[str, Any] = {
        "seed": seed,
        "factor": factor,
        "held_out": False,
        "chosen": True,
        "seconds": 1.0,
    }
    run |= {"planned_epochs": epochs, "planned_updates": 5 * epochs, "updates": 5 * epochs}
    run |= {"diverged": "not finite" if accuracy is None else ""}
    return run | {"epochs": [row(number) for number in range(1, epochs + 1)], **more}


def technique(
    remedy: str,
    global_batch: int,
    runs: list[dict[str, Any]],
    at_edge: bool = False,
    **options: Any,
) -> TechniqueRecord:
    """Return the record of a remedy with these options and runs."""
    chosen, base = Technique.of(options), OPTIONS.reference_batch
    rate = chosen.rate(TRAINING["learning_rate"], global_batch / base)
    tried = [{"learning_rate": rate * each["factor"], **each} for each in runs]
    result: dict[str, Any] = {
        "gpus": gpus_of(global_batch, base, OPTIONS.gpus),
        "chosen_factor": 1.0,
    }
    result |= {"at_edge": at_edge, "runs": tried}
    return TechniqueRecord(
        remedy=remedy,
        global_batch=global_batch,
        options=chosen.model_dump(),
        status="ok",
        message=None,
        training=TRAINING,
        dataset={"source": "digits", "checksum": "fae71f", "train_images": 640, "test_images": 100},
        result=result,
        environment={},
    )


def seeds(*accuracies: float | None, **more: Any) -> list[dict[str, Any]]:
    """A run of each accuracy, seed after seed."""
    return [technique_run(accuracy, seed, **more) for seed, accuracy in enumerate(accuracies)]


def swept(
    *accuracies: float | None, held_out: float | None = None, **more: Any
) -> list[dict[str, Any]]:
    """A sweep of three rates of which the middle one was chosen, and that one's seeds.

    On held-out images the chosen rate reaches the first seed's accuracy, or `held_out`.
    """
    first = accuracies[0] if held_out is None else held_out
    tried = [
        technique_run(one, factor=at, chosen=False, **more) for one, at in [(0.1, 0.25), (0.1, 4.0)]
    ]
    sweep = technique_run(first, chosen=False, **more) | {"held_out": True}
    sweep["epochs"] = [
        {key.replace("test", "validation"): value for key, value in row.items()}
        | {"test_loss": None, "test_accuracy": None}
        for row in sweep["epochs"]
    ]
    return [*tried, sweep, *seeds(*accuracies, **more)]


def techniques() -> list[TechniqueRecord]:
    """Two rules at their word, swept plain SGD, warm-up and Nesterov; at 128, 512 and 8192."""
    naive = {"scaling": "linear", "factors": [1]}
    root, warm = {"scaling": "sqrt"}, {"scaling": "sqrt", "warmup_epochs": 1}
    equal = {"scaling": "sqrt", "nesterov": True}
    tried: list[tuple[str, dict[str, Any], Any, tuple[float, ...]]] = [
        ("none", {"factors": [1]}, seeds, (0.70, 0.50, 0.20)),
        ("naive", naive, seeds, (0.70, 0.55)),
        ("rate_sweep", root, swept, (0.70, 0.60, 0.40)),
        ("warmup", warm, swept, (0.72, 0.64, 0.44)),
        ("equal", equal, swept, (0.70,)),
    ]
    return [
        *(
            technique(name, batch, made(*(first + n / 100 for n in range(3))), **options)
            for name, options, made, accuracies in tried
            for batch, first in zip((128, 512, 8192), accuracies, strict=False)
        ),
        technique("naive", 8192, seeds(*[0.10] * 3, diverged="at chance"), **naive),
        technique("equal", 512, swept(0.74, 0.75, 0.76, epochs=4), **equal),
        technique("equal", 8192, swept(0.50, 0.51, 0.52, epochs=4, planned_updates=8), **equal),
    ]


def synchronization() -> dict[str, Any]:
    """Return a stored record of what two ranks share; its first step is DDP's."""
    path = FLAGSHIP / "experiments/gpus~2/synchronization.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def step_message(phase: str, kind: str, size: int) -> dict[str, Any]:
    """A message of the third step, in which DDP has settled."""
    shared = {"step": 3, "phase": phase, "kind": kind, "dtype": "float32"}
    return {**shared, "elements": size // 4, "bytes": size}
