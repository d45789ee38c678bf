"""A made-up study with every kind of cell: its times, accuracies and what its runs say.

The times are chosen so that a reader can work out what follows from them: see TIMES.
"""

import pandas as pd

import scaling.tables.timing
import scaling.tables.utilization
from scaling.tables import schema

STUDY = "example"
TRAIN_IMAGES = 40_000
GPUS = [1, 2, 4]
BATCHES = [32, 128, 512, 2048, 16384]
GROUPS = [("course", "dp"), ("course", "ddp"), ("fast", "ddp")]

# (epoch_seconds, loader_seconds) on 1, 2 and 4 GPUs, or a status. The range is ± 2 %,
# without loading ± 1 %.
TIMES: dict[tuple[str, str], dict[int, list[tuple[float, float] | str]]] = {
    ("course", "dp"): {
        32: [(9.8, 0.4), (14.0, 0.2), (19.6, 0.1)],
        128: [(4.0, 0.5), (4.02, 0.6), (5.2, 0.7)],
        512: [(3.0, 1.5), (3.3, 1.6), (2.97, 1.6)],
        2048: [(3.02, 1.6), (3.1, 1.8), (3.2, 1.9)],
        16384: [(3.66, 1.9), "oom", "infeasible"],
    },
    ("course", "ddp"): {
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
MESSAGES = {
    "oom": "The device had no room: 22.00 GiB were asked for, 139.80 GiB in use.",
    "infeasible": "One update needs 4 × 16384 = 65536 images, the training set has 40000.",
    "timeout": "Stopped after the cell's limit of 1800 s.",
    "missing": "0 of 3 runs have a record.",
    "diverged": "The loss became NaN in epoch 2 of seed 1.",
}
DIVERGED = ("course", "ddp", 2, 16384)


def cells(missing: bool) -> pd.DataFrame:
    """timing.csv; with `missing`, the cell fast/ddp, 4 GPUs, batch 32 has no record."""
    rows = []
    for recipe, strategy in GROUPS:
        for batch, outcomes in TIMES[recipe, strategy].items():
            for gpus, outcome in zip(GPUS, outcomes, strict=True):
                status = outcome if isinstance(outcome, str) else "ok"
                seconds, loader = (None, None) if isinstance(outcome, str) else outcome
                if (recipe, strategy, gpus, batch) == DIVERGED:
                    status = "diverged"
                if missing and (recipe, strategy, gpus, batch) == ("fast", "ddp", 4, 32):
                    status, seconds, loader = "missing", None, None
                row = [recipe, strategy, gpus, batch, status]
                if seconds is None:
                    row += [None] * 10
                else:
                    row += [seconds, seconds - loader, loader, 0.98 * seconds, 1.02 * seconds]
                    row += [0.99 * (seconds - loader), 1.01 * (seconds - loader)]
                    row += [9, -(-TRAIN_IMAGES // (gpus * batch)), TRAIN_IMAGES]
                rows.append([*row, MESSAGES.get(status, "")])
    columns = "recipe strategy gpus batch_size status epoch_seconds epoch_seconds_without_loading"
    columns += " loader_seconds epoch_seconds_min epoch_seconds_max"
    columns += " epoch_seconds_without_loading_min epoch_seconds_without_loading_max"
    columns += " count iterations samples"
    table = pd.DataFrame(rows, columns=[*columns.split(), "message"])
    return table.reindex(columns=schema.columns("timing"))


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


def costs(timing: pd.DataFrame) -> pd.DataFrame:
    """3.329 GFLOP an image; course ran in TF32, fast in bf16, what had no time said nothing."""
    timed = timing["epoch_seconds"].notna()
    return timing[scaling.tables.utilization.CELL_KEYS].assign(
        flops_per_image=timed.map({True: 3_328_997_376, False: float("nan")}),
        precision=timing["recipe"].map({"course": "tf32", "fast": "bf16"}).where(timed),
        power_capped_share=float("nan"),
        cost_note="",
        drift=timing["batch_size"].map({128: -0.03, 512: 0.09}),
        settled=~timing["batch_size"].isin([128, 512]),
    )


def in_memory(timing: pd.DataFrame) -> pd.DataFrame:
    """in_memory.csv: what an epoch takes without loading, it takes in memory; three repeats."""
    ends = {
        f"in_memory_epoch_seconds{end}": timing[f"epoch_seconds_without_loading{end}"]
        for end in ("", "_min", "_max")
    }
    keys = timing[scaling.tables.utilization.CELL_KEYS]
    return schema.frame("in_memory", keys.assign(**ends, count=timing["count"], runs=1))


def provenance(timing: pd.DataFrame, device: str, host: str) -> pd.DataFrame:
    """provenance.csv: every run on one machine, three seeds a cell."""
    rows = [
        {key: getattr(cell, key) for key in timing.columns[:5]}
        | {
            "seed": seed,
            "repeat": 0,
            "hosts": host,
            "device": device,
            "model": "resnet18-cifar, width 64",
        }
        | {"device_names": "NVIDIA H200" if device == "cuda" else "", "torch": "2.11.0"}
        | {"training": "SGD, learning rate 0.1", "started": "2025-11-20T09:00:00+00:00"}
        for cell in timing[timing["status"] != "missing"].itertuples()
        for seed in (0, 1, 2)
    ]
    return pd.DataFrame(rows).reindex(columns=schema.columns("provenance"))
