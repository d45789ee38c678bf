"""Run records and timing tables made by hand, for tests."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core.grid import Cell
from scaling.core.records.kind import Role, Status
from scaling.core.records.run import RUN, EpochRow, RunRecord
from scaling.core.statistics import settling
from scaling.tables import schema

STORED = (
    Path(__file__).parents[2]
    / "studies/h100x2/runs"
    / ("recipe~plain/strategy~ddp/gpus~1/batch_size~128/seed~0/run.json")
)
TRAIN_IMAGES = 50_000
GRADIENT_BYTES = 44_695_848


def epoch(
    number: int,
    seconds: float,
    loader_seconds: float = 0.0,
    *,
    rank: int = 0,
    role: Role = "measured",
    iterations: int = 391,
    samples: int = TRAIN_IMAGES,
    train_loss: float | None = 1.5,
    train_accuracy: float | None = 0.5,
) -> EpochRow:
    """One epoch as one rank saw it; the defaults are 50,000 images at batch 128 on one GPU."""
    return EpochRow(
        epoch=number,
        rank=rank,
        role=role,
        seconds=seconds,
        loader_seconds=loader_seconds,
        iterations=iterations,
        samples=samples,
        train_loss=train_loss,
        train_accuracy=train_accuracy,
        power_capped_seconds=None,
        gpu_readings=[],
    )


def epochs(cell: Cell, *seconds: float) -> list[EpochRow]:
    """Measured epochs of so many seconds, each of all 50,000 images, by the ranks of DDP."""
    own = -(-TRAIN_IMAGES // cell.gpus)
    shares = {"samples": own, "iterations": -(-own // cell.batch_size)}
    return [
        epoch(number, each, rank=rank, **shares)
        for number, each in enumerate(seconds, start=1)
        for rank in range(cell.gpus)
    ]


def record(
    cell: Cell,
    epochs: list[EpochRow],
    *,
    status: Status = "ok",
    message: str | None = None,
    evaluation: dict[str, float] | None = None,
    environment: dict[str, Any] | None = None,
) -> RunRecord:
    """The record of one run: a stored one's, with these epochs and without instruments."""

    def numbers(role: Role) -> int:
        return len({row["epoch"] for row in epochs if row["role"] == role})

    found = RUN.read(STORED)
    found["dataset"]["checksum"] = "fae71f"
    nothing: list[Any] = []
    return found | {  # type: ignore[return-value]
        "cell": asdict(cell),
        "status": status,
        "message": message,
        "model": found["model"]
        | dict.fromkeys(("flops_per_image", "activation_bytes_per_image"))
        | {"parameters_sha256": ["0" * 64] * len({row["rank"] for row in epochs})},
        "training": found["training"]
        | dict.fromkeys(("recipe_applied", "compiled_batch_sizes", "compiled_graphs"))
        | {"engine": {"tuned": "resident"}.get(cell.recipe, "eager"), "measured_seconds": 0.0}
        | {"warmup_epochs": numbers("warmup"), "measured_epochs": min(3, numbers("measured") or 3)},
        "epochs": epochs,
        "evaluation": evaluation,
        "settling": settling(epochs),
        "memory": {"kind": "device", "peak_bytes": [], "capacity_bytes": None},
        "communication": found["communication"] | {"backend": "nccl", "readings": nothing},
        "environment": environment or {},
        **dict.fromkeys(("in_memory", "device_time"), nothing),
        **dict.fromkeys(("startup", "run_seconds")),
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
    recipe: str = "plain",
    strategy: str = "ddp",
    status: str = "ok",
    count: float = 3,
) -> dict[str, Any]:
    """One row of timing.csv: `seconds`, give or take `spread`; without seconds, an empty row.

    All of the spread is in the part without loading.
    """
    timed = not math.isnan(seconds)
    return {
        "recipe": recipe,
        "strategy": strategy,
        "gpus": gpus,
        "batch_size": batch_size,
        "status": status,
        "epoch_seconds": seconds,
        "epoch_seconds_without_loading": seconds - loader_seconds,
        "loader_seconds": loader_seconds if timed else math.nan,
        "epoch_seconds_min": seconds - spread,
        "epoch_seconds_max": seconds + spread,
        "epoch_seconds_without_loading_min": seconds - loader_seconds - spread,
        "epoch_seconds_without_loading_max": seconds - loader_seconds + spread,
        "count": count if timed else math.nan,
        "iterations": math.ceil(TRAIN_IMAGES / (gpus * batch_size)) if timed else math.nan,
        "samples": TRAIN_IMAGES if timed else math.nan,
        "message": "",
    }


def timing_table(*rows: dict[str, Any]) -> pd.DataFrame:
    """timing.csv with these rows."""
    return pd.DataFrame(rows, columns=schema.columns("timing"))


def full_training(gpus: int, seed: int, seconds: float, accuracy: float) -> RunRecord:
    """A training of four epochs by two GPUs at most; each GPU takes 100 J an epoch."""
    reading: Any = {"energy_joules": 100.0}
    epochs = [
        EpochRow(
            **{**epoch(number, seconds / 4 - rank / 100, rank=rank), "gpu_readings": [reading]}
        )
        for number in (1, 2, 3, 4)
        for rank in range(gpus)
    ]
    found = record(
        Cell("tuned", "ddp", gpus, 1024 // gpus, seed),
        epochs,
        evaluation={"test_accuracy": accuracy},
    )
    found["run_seconds"] = seconds + 20
    return found
