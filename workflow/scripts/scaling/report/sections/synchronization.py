"""The report's sections on questions 5 to 7: image orders, messages of a step, buffers."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, TableCell, make_table, status
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
    for key, same in drawn.groupby(["sampler", "gpus", "set_epoch"], sort=False):
        row = dict(zip(("sampler", "gpus", "set_epoch"), key, strict=True))
        chains = same.groupby(["trained", "seed", "rank"])["first_epoch"].nunique()
        row |= {"epochs": same["epoch"].nunique(), "orders": len(same), "different": _span(chains)}
        rows.append(row | {name: _span(same[name]) for name in ("overlap", "unseen", "repeated")})
    return make_table("Orders of images, hashed", pd.DataFrame(rows), ORDERS)


def _span(values: pd.Series) -> str:
    return fmt.whole_span(values, "–")


ORDERS = [
    Column("sampler", "sampler", kind="head"),
    Column("GPUs", "gpus", fmt.integer),
    Column("set_epoch", "set_epoch", lambda told: "yes" if told else "no", "text"),
    Column("epochs", "epochs", fmt.integer),
    Column("different orders of a rank", "different"),
    Column("images two ranks share", "overlap"),
    Column("images left out", "unseen"),
    Column("draws repeated", "repeated"),
    Column("orders hashed", "orders", lambda count: f"{count:,}"),
]


def _accuracies(accuracy: pd.DataFrame) -> Table:
    names = ["train_loss", "train_accuracy", "test_accuracy"]
    paired = accuracy.assign(how=accuracy["set_epoch"].map({True: "with", False: "without"}))
    rows = paired.pivot(index="seed", columns="how", values=names)
    rows.columns = [f"{name}_{how}" for name, how in rows.columns]
    every = [f"{name}_{how}" for name in names for how in ("with", "without")]
    epochs = fmt.plural(int(accuracy["epochs"].max()), "epoch")
    return make_table(
        f"Recipe course with and without set_epoch, after {epochs}",
        rows.reindex(columns=every).astype(float).reset_index(),
        ACCURACIES,
    )


def _percentage(share: float) -> str:
    return f"{100 * share:.2f} %"


ACCURACIES = [
    Column("seed", "seed", kind="head"),
    *(
        Column(how, f"{name}_{how}", write, group=group, missing="not finite")
        for name, group, write in (
            ("train_loss", "training loss", lambda loss: fmt.significant(loss, 4)),
            ("train_accuracy", "training accuracy", _percentage),
            ("test_accuracy", "test accuracy", _percentage),
        )
        for how in ("with", "without")
    ),
    Column(
        "without − with, points",
        lambda row: 100 * (row.test_accuracy_without - row.test_accuracy_with),
        fmt.points,
        group="test accuracy",
    ),
]


def _messages(messages: pd.DataFrame) -> Table:
    known = messages[messages["bytes"].notna()]
    last = known.groupby("way")["step"].transform("max")
    shown = known[known["step"].eq(0) | known["step"].eq(last)]
    order = list(dict.fromkeys(shown["way"]))
    sums = {
        "messages": ("bytes", "size"),
        "bytes": ("bytes", "sum"),
        "gradient_bytes": ("gradient_bytes", "first"),
    }
    rows = shown.groupby(["way", "phase", "kind", "content"], sort=False).agg(**sums).reset_index()
    rows = rows.sort_values("way", key=lambda ways: ways.map(order.index), kind="stable")
    disagreeing = known.loc[~known["ranks_agree"], "way"].unique()
    return make_table(
        "Messages of a training step",
        rows,
        MESSAGES,
        notes=[
            *(f"{row.way}: {row.note}" for row in messages[messages["bytes"].isna()].itertuples()),
            *(
                f"{way}: the ranks recorded different messages; these are rank 0's"
                for way in disagreeing
            ),
        ],
    )


def _share(share: float) -> str:
    """A share as a percentage with three digits, `< 0.001 %` for less than that."""
    return "< 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"


MESSAGES = [
    Column("way", "way", kind="head", per=("way",)),
    Column("when", "phase", lambda phase: PHASES.get(phase, f"each step, {phase}"), "text"),
    Column("kind", "kind", lambda kind: kind.replace("_", "-"), "text"),
    Column("content", "content", kind="text"),
    Column("messages", "messages"),
    Column("bytes", "bytes", lambda size: f"{int(size):,}"),
    Column("of K", lambda row: int(row.bytes) / row.gradient_bytes, _share),
]


def _buffers(compared: pd.DataFrame) -> Table:
    ranks = compared.assign(test_accuracy=100 * compared["test_accuracy"]).groupby(
        "buffers", sort=False
    )
    rows = ranks.first().assign(
        parameters=ranks["parameters_sha256"].agg(_alike),
        hashes=ranks["buffers_sha256"].agg(_alike),
        lowest=ranks["test_accuracy"].min(),
        highest=ranks["test_accuracy"].max(),
    )
    measured = ranks["rank"].first().notna()
    absent = rows[~measured].itertuples()
    return make_table(
        "Ranks compared after the last epoch",
        rows[measured].reset_index(),
        RANKS,
        notes=[
            *(f"{BUFFERS[str(row.Index)]}: {row.note}" for row in absent),
            *_not_repeatable(compared),
        ],
    )


def _alike(hashes: pd.Series) -> str:
    return "identical" if hashes.nunique() == 1 else f"{hashes.nunique()} different"


def _drift(name: str) -> Column:
    """How far the ranks' running statistics of one kind are apart."""
    return Column(
        f"running {name}s apart",
        f"{name}_drift_mean",
        fmt.percent,
        detail=lambda row: f"{fmt.percent(getattr(row, f'{name}_drift_max'))} at most",
    )


def _untimed(row: Any) -> TableCell | None:
    return status("not timed without loading") if row.count == 0 else None


RANKS = [
    Column("buffers", "buffers", lambda kind: BUFFERS[kind], "head"),
    Column("parameters", "parameters", kind="text"),
    Column("buffers on the ranks", "hashes", kind="text"),
    _drift("variance"),
    _drift("mean"),
    Column("test accuracy by rank", lambda row: f"{row.lowest:.2f}–{row.highest:.2f} %"),
    Column(
        "seconds per epoch",
        "epoch_seconds",
        fmt.seconds,
        detail=lambda row: (
            f"{fmt.span(row.epoch_seconds_min, row.epoch_seconds_max)}, n = {int(row.count)}"
        ),
        instead=_untimed,
    ),
]


def _not_repeatable(compared: pd.DataFrame) -> list[str]:
    """Note that two trainings which should be equal were not, where that can be seen.

    A forward pass in training does not read running statistics, so broadcast and local buffers
    leave the parameters alike.
    """
    alike = compared[compared["buffers"].isin(["broadcast", "local"])]
    if alike["parameters_sha256"].nunique() < 2 or alike["buffers"].nunique() < 2:
        return []
    return [
        "compare test accuracies within a row, not between rows: each kind was trained once, and "
        "a training does not repeat itself here. Broadcast and local buffers train alike from one "
        "seed, as no forward pass in training reads them, and yet ended with other parameters"
    ]
