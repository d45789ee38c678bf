"""The report's sections on questions 5 to 7: image orders, messages of a step, buffers."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables.schema import StudyTables

PHASES = {"start": "once, at the start"}
BUFFERS = {
    "broadcast": "broadcast before each forward pass",
    "local": "local to each rank",
    "sync_batch_norm": "SyncBatchNorm",
}


def set_epoch(tables: StudyTables) -> dict[str, Any]:
    """The orders that samplers drew, and accuracies with and without set_epoch by seed."""
    drawn, accuracy = tables.experiment("sampler"), tables.experiment("sampler_accuracy")
    made = [_orders(drawn)] if len(drawn) else []
    made += [_accuracies(accuracy)] if len(accuracy) else []
    return {"tables": made}


def collectives(tables: StudyTables) -> dict[str, Any]:
    """Every message of the start and of a settled step, by way to train in parallel."""
    messages = tables.experiment("collectives")
    return {"tables": [_messages(messages)] if len(messages) else []}


def buffers(tables: StudyTables) -> dict[str, Any]:
    """Ranks whose buffers are broadcast, local or synchronized, side by side."""
    compared = tables.experiment("buffers")
    return {"tables": [_buffers(compared)] if len(compared) else []}


def _orders(drawn: pd.DataFrame) -> Table:
    rows = []
    for (sampler, gpus, told), some in drawn.groupby(["sampler", "gpus", "set_epoch"], sort=False):
        chains = some.groupby(["trained", "seed", "rank"])["first_epoch"].nunique()
        rows.append(
            [
                head(str(sampler)),
                TableCell(str(int(gpus))),
                text("yes" if told else "no"),
                TableCell(str(int(some["epoch"].nunique()))),
                TableCell(_range(chains)),
                TableCell(_range(some["overlap"])),
                TableCell(_range(some["unseen"])),
                TableCell(_range(some["repeated"])),
                TableCell(f"{len(some):,}"),
            ]
        )
    return Table(
        title="Orders of images, hashed",
        columns=[
            *("sampler", "GPUs", "set_epoch", "epochs", "different orders of a rank"),
            *("images two ranks share", "images left out", "draws repeated", "orders hashed"),
        ],
        rows=rows,
        text_columns=frozenset({"sampler", "set_epoch"}),
    )


def _accuracies(accuracy: pd.DataFrame) -> Table:
    rows = []
    for seed, pair in accuracy.groupby("seed"):
        told = {bool(row.set_epoch): row for row in pair.itertuples()}
        line = [head(str(seed))]
        for name in ("train_loss", "train_accuracy", "test_accuracy"):
            values = [getattr(told[key], name) if key in told else None for key in (True, False)]
            line += [_quantity(name, value) for value in values]
        both = [told[key].test_accuracy if key in told else float("nan") for key in (True, False)]
        rows.append([*line, TableCell(fmt.points(100 * (both[1] - both[0])))])
    epochs = fmt.plural(int(accuracy["epochs"].max()), "epoch")
    return Table(
        title=f"Recipe course with and without set_epoch, after {epochs}",
        groups=[("", 1), ("training loss", 2), ("training accuracy", 2), ("test accuracy", 3)],
        columns=["seed", *["with", "without"] * 3, "without − with, points"],
        rows=rows,
    )


def _quantity(name: str, value: float | None) -> TableCell:
    if value is None or pd.isna(value):
        return status("not finite")
    return TableCell(fmt.significant(value, 4) if name == "train_loss" else f"{100 * value:.2f} %")


def _messages(messages: pd.DataFrame) -> Table:
    rows = []
    notes = [f"{row.way}: {row.note}" for row in messages[messages["bytes"].isna()].itertuples()]
    known = messages[messages["bytes"].notna()]
    for way, of_way in known.groupby("way", sort=False):
        shown = of_way[of_way["step"].isin([0, of_way["step"].max()])]
        groups = list(shown.groupby(["phase", "kind", "content"], sort=False))
        for index, ((phase, kind, content), some) in enumerate(groups):
            whole = int(some["bytes"].sum())
            rows.append(
                [
                    *([head(str(way), rows=len(groups))] if index == 0 else []),
                    text(PHASES.get(str(phase), f"each step, {phase}")),
                    text(str(kind).replace("_", "-")),
                    text(str(content)),
                    TableCell(str(len(some))),
                    TableCell(f"{whole:,}"),
                    TableCell(_share(whole / some["gradient_bytes"].iloc[0])),
                ]
            )
        if not of_way["ranks_agree"].all():
            notes.append(f"{way}: the ranks recorded different messages; these are rank 0's")
    return Table(
        title="Messages of a training step",
        columns=["way", "when", "kind", "content", "messages", "bytes", "of K"],
        rows=rows,
        notes=notes,
        text_columns=frozenset({"way", "when", "kind", "content"}),
    )


def _buffers(compared: pd.DataFrame) -> Table:
    rows, notes = [], []
    for kind, ranks in compared.groupby("buffers", sort=False):
        row = ranks.iloc[0]
        if pd.isna(row["rank"]):
            notes.append(f"{BUFFERS[str(kind)]}: {row['note']}")
            continue
        accuracies = 100 * ranks["test_accuracy"]
        rows.append(
            [
                head(BUFFERS[str(kind)]),
                text(_alike(ranks["parameters_sha256"])),
                text(_alike(ranks["buffers_sha256"])),
                *(
                    TableCell(
                        fmt.percent(row[f"{name}_drift_mean"]), f"{_largest(row, name)} at most"
                    )
                    for name in ("variance", "mean")
                ),
                TableCell(f"{accuracies.min():.2f}–{accuracies.max():.2f} %"),
                _seconds(row),
            ]
        )
    return Table(
        title="Ranks compared after the last epoch",
        columns=[
            *("buffers", "parameters", "buffers on the ranks", "running variances apart"),
            *("running means apart", "test accuracy by rank", "seconds per epoch"),
        ],
        rows=rows,
        notes=[*notes, *_not_repeatable(compared)],
        text_columns=frozenset({"buffers", "parameters", "buffers on the ranks"}),
    )


def _not_repeatable(compared: pd.DataFrame) -> list[str]:
    """That two trainings which should be equal were not, where broadcast and local buffers differ.

    A forward pass in training does not read running statistics.
    """
    alike = compared[compared["buffers"].isin(["broadcast", "local"])]
    if alike["parameters_sha256"].nunique() < 2 or alike["buffers"].nunique() < 2:
        return []
    return [
        "compare test accuracies within a row, not between rows: each kind was trained once, and "
        "a training does not repeat itself here. Broadcast and local buffers train alike from one "
        "seed, as no forward pass in training reads them, and yet ended with other parameters"
    ]


def _share(share: float) -> str:
    """A share as a percentage with three digits, `< 0.001 %` for less than that."""
    return "< 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"


def _seconds(row: pd.Series) -> TableCell:
    if row["count"] == 0:
        return status("not timed without loading")
    span = fmt.span(row["epoch_seconds_min"], row["epoch_seconds_max"])
    return TableCell(fmt.seconds(row["epoch_seconds"]), f"{span}, n = {int(row['count'])}")


def _alike(hashes: pd.Series) -> str:
    return "identical" if hashes.nunique() == 1 else f"{hashes.nunique()} different"


def _largest(row: pd.Series, name: str) -> str:
    return fmt.percent(row[f"{name}_drift_max"])


def _range(values: pd.Series) -> str:
    known = values.dropna()
    if known.empty:
        return "–"
    low, high = int(known.min()), int(known.max())
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
