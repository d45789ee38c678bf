"""Accuracies of a made-up study, with every outcome of a cell."""

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import schema

STUDY = "example"
GPUS = [1, 2, 4]
BATCHES = [32, 128, 512, 2048, 16384]
CONFIGURATIONS = [("plain", "dp"), ("plain", "ddp"), ("fast", "ddp")]
OTHERS = {
    ("plain", "dp", 2, 16384): "oom",
    ("plain", "ddp", 1, 2048): "timeout",
    ("plain", "ddp", 2, 16384): "diverged",
    ("fast", "ddp", 1, 16384): "oom",
    ("fast", "ddp", 2, 16384): "oom",
}
"""The outcomes of cells that are not ok, without those on four GPUs that cannot run."""


def cells() -> pd.DataFrame:
    """timing.csv, of which an accuracy needs no times."""
    rows = []
    for recipe, strategy in CONFIGURATIONS:
        for batch in BATCHES:
            for gpus in GPUS:
                cell = recipe, strategy, gpus, batch
                status = OTHERS.get(cell, "infeasible" if gpus * batch > 40_000 else "ok")
                rows.append(dict(zip(CELL_KEYS, cell, strict=True)) | {"status": status})
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
            if cell.status not in ("ok", "diverged"):
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
