"""A made-up study with every kind of cell: its times, accuracies and what its runs say.

The times are chosen so that a reader can work out what follows from them: see TIMES.
"""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema

STUDY = "example"
TRAIN_IMAGES = 40_000
GPUS = [1, 2, 4]
BATCHES = [32, 128, 512, 2048, 16384]

# (epoch_seconds, loader_seconds) on 1, 2 and 4 GPUs, or a status. The range is ± 2 %,
# without loading ± 1 %.
TIMES: dict[tuple[str, str], dict[int, list[tuple[float, float] | str]]] = {
    ("plain", "dp"): {
        32: [(9.8, 0.4), (14.0, 0.2), (19.6, 0.1)],
        128: [(4.0, 0.5), (4.02, 0.6), (5.2, 0.7)],
        512: [(3.0, 1.5), (3.3, 1.6), (2.97, 1.6)],
        2048: [(3.02, 1.6), (3.1, 1.8), (3.2, 1.9)],
        16384: [(3.66, 1.9), "oom", "infeasible"],
    },
    ("plain", "ddp"): {
        32: [(9.8, 0.4), (5.6, 0.3), (3.1, 0.2)],
        128: [(4.0, 0.5), (2.2, 0.3), (1.25, 0.2)],
        512: [(3.0, 1.5), (1.49, 0.7), (0.9, 0.4)],
        2048: ["timeout", (1.6, 0.8), (0.95, 0.45)],
        16384: [(3.66, 1.9), (1.9, 1.0), "infeasible"],
    },
    ("fast", "ddp"): {
        32: [(7.2, 0.0), (4.1, 0.0), (2.2, 0.0)],
        128: [(1.76, 0.0), (0.99, 0.0), (0.6, 0.0)],
        512: [(1.32, 0.0), (0.66, 0.0), (0.32, 0.0)],
        2048: [(1.24, 0.0), (0.64, 0.0), (0.33, 0.0)],
        16384: ["oom", "oom", "infeasible"],
    },
}
DIVERGED = ("plain", "ddp", 2, 16384)


def of_seconds(seconds: float, loader: float) -> dict[str, float]:
    """The columns of timing.csv on a time of ± 2 %, ± 1 % without loading."""
    times = {"epoch_seconds": (seconds, 0.02), "loader_seconds": (loader, 0)}
    times["epoch_seconds_without_loading"] = seconds - loader, 0.01
    return {
        f"{name}{end}": value * (1 + sign * spread)
        for name, (value, spread) in times.items()
        for end, sign in {"": 0, "_min": -1, "_max": 1}.items()
        if spread or not end
    }


def cells() -> pd.DataFrame:
    """timing.csv."""
    rows = []
    for (recipe, strategy), batches in TIMES.items():
        for batch, outcomes in batches.items():
            for gpus, outcome in zip(GPUS, outcomes, strict=True):
                cell = recipe, strategy, gpus, batch
                row = dict(zip(CELL_KEYS, cell, strict=True)) | {"message": ""}
                if isinstance(outcome, str):
                    rows.append(row | {"status": outcome, "message": f"It ended so: {outcome}."})
                    continue
                row |= {"status": "diverged" if cell == DIVERGED else "ok", "count": 9}
                steps = {"iterations": -(-TRAIN_IMAGES // (gpus * batch)), "samples": TRAIN_IMAGES}
                rows.append(row | of_seconds(*outcome) | steps)
    return schema.frame("timing", rows)


def accuracy(timing: pd.DataFrame) -> pd.DataFrame:
    """accuracy.csv: five epochs, three seeds; a larger global batch learns more slowly.

    Seed 1 of the diverged cell stops after epoch 2, the other two are ok.
    """
    rows = []
    for cell in timing.itertuples():
        for seed in (0, 1, 2):
            key = {"study": STUDY, **{key: getattr(cell, key) for key in timing.columns[:4]}}
            key |= {"seed": seed, "status": cell.status}
            if pd.isna(cell.epoch_seconds):
                rows.append(key)
                continue
            pace = (128 / (cell.gpus * cell.batch_size)) ** 0.25
            for epoch in range(1, 6):
                diverged = cell.status == "diverged" and seed == 1
                if diverged and epoch > 2:
                    break
                share = min(0.95, 0.1 + pace * (0.08 + 0.12 * epoch - 0.01 * seed))
                row = {**key, "epoch": epoch, "train_loss": 2.4 - 2 * share}
                row["train_accuracy"] = None if diverged else share
                last = epoch == 5 and not diverged
                row["test_loss"] = 2.5 - 2 * share if last else None
                row["test_accuracy"] = share - 0.02 if last else None
                rows.append(row | {"status": "diverged" if diverged else "ok"})
    return pd.DataFrame(rows, columns=schema.columns("accuracy"))


def in_memory(timing: pd.DataFrame) -> pd.DataFrame:
    """in_memory.csv: what an epoch takes without loading, it takes in memory; three repeats."""
    ends = {
        f"in_memory_epoch_seconds{end}": timing[f"epoch_seconds_without_loading{end}"]
        for end in ("", "_min", "_max")
    }
    keys = timing[CELL_KEYS]
    return schema.frame("in_memory", keys.assign(**ends, count=timing["count"], runs=1))
