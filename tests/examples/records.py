"""Hand-written records and tables, tables that are derived from them, and their claims."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim
from scaling.core import files
from scaling.core.grid import Cell
from scaling.core.records.run import RUN, RunRecord
from scaling.core.statistics import settling
from scaling.tables import schema
from scaling.tables.epoch_parts import bandwidth, communication, utilization
from scaling.tables.ratios import speedup
from scaling.tables.schema import StudyTables
from scaling.tables.timing import Run

FLAGSHIP = Path(__file__).parents[2] / "studies/h200x2"
STORED = FLAGSHIP / "runs/recipe~plain/strategy~single/gpus~1/batch_size~128/seed~0/run.json"
TRAIN_IMAGES = 50_000
GRADIENT_BYTES = 44_695_848


def epoch(number: int, seconds: float, **changes: Any) -> dict[str, Any]:
    """Return one rank's record of an epoch. Defaults: 50,000 images, batch 128, one GPU."""
    made = {"epoch": number, "rank": 0, "role": "measured", "iterations": 391}
    made |= {"seconds": seconds, "loader_seconds": 0.0, "samples": TRAIN_IMAGES}
    made |= {"train_loss": 1.5, "train_accuracy": 0.5, "power_capped_seconds": None}
    return {**made, "gpu_readings": [], **changes}


def epochs(cell: Cell, *seconds: float) -> list[dict[str, Any]]:
    """Return the records of measured epochs of 50,000 images, for all ranks of DDP."""
    own = -(-TRAIN_IMAGES // cell.gpus)
    shares = {"samples": own, "iterations": -(-own // cell.batch_size)}
    return [
        epoch(number, each, rank=rank, **shares)
        for number, each in enumerate(seconds, start=1)
        for rank in range(cell.gpus)
    ]


def record(cell: Cell, epochs: list[dict[str, Any]], **changes: Any) -> RunRecord:
    """Return the record of a stored run with these epochs."""
    found = RUN.read(STORED)
    numbers = Counter(row["role"] for row in epochs if row["rank"] == 0)
    found["model"]["parameters_sha256"] = ["0" * 64] * len({row["rank"] for row in epochs})
    found["training"] |= {
        **{"engine": {"tuned": "resident"}.get(cell.recipe, "eager"), "recipe_applied": None},
        **{"warmup_epochs": numbers["warmup"], "measured_epochs": min(3, numbers["measured"]) or 3},
    }
    found |= dict.fromkeys(("evaluation", "run_seconds"))
    del found["energy"], found["startup"]["cudnn_search"]
    found |= {"cell": asdict(cell), "epochs": epochs, "settling": settling(epochs)}
    return found | {"environment": {"hosts": ["vm"]}, **changes}


def save(folder: Path, made: RunRecord) -> None:
    """Write a record to its usual path below `folder`."""
    RUN.write(Cell(**made["cell"]).record_path(folder), made)


def timing_row(
    gpus: int, batch_size: int, seconds: float = math.nan, *, spread: float = 0.0, **changes: Any
) -> dict[str, Any]:
    """Return a row of timing.csv: `seconds` ± `spread`. Without seconds, the row has no time.

    Training takes `seconds` - `loader_seconds`. By default, the row is of recipe plain with DDP.
    """
    timed, training = 0 * seconds, seconds - changes.get("loader_seconds", 0.0)
    return {
        **{"recipe": "plain", "strategy": "ddp" if gpus > 1 else "", "gpus": gpus},
        "batch_size": batch_size,
        **{"status": "ok", "message": "", "loader_seconds": timed},
        **{"epoch_seconds": seconds, "training_seconds": training},
        **{"epoch_seconds_low": seconds - spread, "epoch_seconds_high": seconds + spread},
        **{"training_seconds_low": training - spread, "training_seconds_high": training + spread},
        **{"runs": 3 + timed, "count": 3 + timed, "samples": TRAIN_IMAGES + timed},
        "iterations": math.ceil(TRAIN_IMAGES / (gpus * batch_size)) + timed,
        **changes,
    }


def runs_of(timing: pd.DataFrame) -> pd.DataFrame:
    """Return provenance.csv for `timing`: per row, one run, or three at the value and both ends."""
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
    """Return timing.csv with these rows."""
    return schema.frame("timing", rows)


def full_training(gpus: int, seed: int, seconds: float, accuracy: float) -> RunRecord:
    """Return a training of four epochs on one or two GPUs. A GPU uses 100 J per epoch."""
    epochs = [
        epoch(number, seconds / 4 - rank / 100, rank=rank, gpu_readings=[{"energy_joules": 100.0}])
        for number in (1, 2, 3, 4)
        for rank in range(gpus)
    ]
    cell = Cell("tuned", "ddp", gpus, 1024 // gpus, seed)
    found = record(cell, epochs, evaluation={"test_accuracy": accuracy})
    return found | {"run_seconds": seconds + 20}


def synchronization() -> dict[str, Any]:
    """Return a stored record of the synchronization of four ranks. Its first step is one of DDP."""
    return files.read_json(FLAGSHIP.with_name("h200x4") / "experiments/gpus~4/synchronization.json")


def derived(runs: Sequence[Run] = (), **rows: Any) -> StudyTables:
    """Return tables with these rows, and tables derived from them and from records of `runs`."""
    found = {name: schema.frame(name, own) for name, own in rows.items()}
    if "timing" in found:
        found.setdefault("provenance", runs_of(found["timing"]))
    tables = StudyTables("example", found)
    found["communication"] = communication(tables, [*runs])
    for make in (speedup, bandwidth, utilization):
        found[make.__name__] = make(tables)
    return tables


def study(*rows: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Return timing.csv with these rows, and the tables derived from it."""
    return {**derived(timing=timing_table(*rows)).found}


def claims(answer: Callable[..., Answer], made: dict[str, pd.DataFrame]) -> dict[str, Claim]:
    """Return the claims of `answer` for these tables, by id."""
    return {claim.id: claim for claim in answer(StudyTables("example", made)).claims}
