"""Answers to the lab's questions, one sentence each, from a study's tables."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report import frames
from scaling.report.cell_map import PARTS
from scaling.report.overview import seeds, speedups, times_span
from scaling.report.views import scaling, synchronization
from scaling.tables.experiments import best_remedy
from scaling.tables.experiments.quantization_cost import cost
from scaling.tables.schema import StudyTables, by_configuration, rows_of

Answer = str | None
STRONG = "fixed_global_batch_speedup"


def batch_size(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Compare the time of a step of the two smallest batches, and name the worst data wait."""
    timed = cells[(cells["status"] == "ok") & cells["epoch_seconds"].notna()]
    single = timed[timed["gpus"] == timed["gpus"].min()]
    single = single.assign(step=single["epoch_seconds"] / single["iterations"])
    parts = []
    for recipe, rows in single.groupby("recipe", sort=False):
        steps = rows.groupby("batch_size")["step"].median()
        if len(steps) > 1:
            small, next_size, *_ = steps.index
            parts.append(f"{fmt.times(steps[next_size] / steps[small])} with {recipe}")
    if not parts:
        return None
    said = f"A step of {next_size} images is longer than one of {small}: {', '.join(parts[:3])}"
    waits: Any = next(timed.sort_values("loading_share", ascending=False).itertuples())
    most = f"Waiting for data takes up to {fmt.percent(waits.loading_share)}"
    return f"{said}. {most} ({frames.label(waits)})."


def speedup(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return the weak speedup of each configuration, and the strong one of the best."""
    found = speedups(cells)
    if not found:
        return None
    said = ", ".join(f"{name} {times_span(rows['speedup'])}" for name, rows in found[:3])
    weak = "Weak scaling: the batch per GPU is fixed"
    best = found[0][1].merge(tables.speedup[[*CELL_KEYS, STRONG]], on=CELL_KEYS)[STRONG].dropna()
    strong = f" At one global batch (strong): {times_span(best)}." if len(best) else ""
    return f"{weak}. On {fmt.gpus(found[0][1]['gpus'].iloc[0])}: {said}.{strong}"


def communication(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return the largest part of an epoch and that of communication, on several GPUs."""
    known = cells[cells["communication_share"].notna() & (cells["gpus"] > 1)]
    if known.empty:
        return None
    said = []
    for recipe, strategy, rows in by_configuration(known):
        most: Any = rows[list(PARTS)].median().idxmax()
        said.append(
            f"{recipe}/{strategy} {PARTS[most]} ({fmt.percent(rows[most].median())}), "
            f"communication {_ends(rows['communication_share'])}"
        )
    return f"Mostly: {'; '.join(said[:3])}."


def _ends(shares: pd.Series) -> str:
    ends = shares.clip(lower=0).agg(["min", "max"]).map(fmt.percent)
    return "–".join(ends.unique()).replace(" %–", "–")


def bandwidth(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return the highest bandwidth of a cell, relative to the link's."""
    known = scaling.bandwidth.rows(tables, cells)
    known = known[known["utilization"].notna() & (known["utilization"] <= 1)]
    if known.empty:
        return None
    best: Any = next(known.sort_values("utilization", ascending=False).itertuples())
    link = f"{fmt.percent(best.utilization)} of the link’s {fmt.significant(best.peak_gb_per_s)}"
    return f"At most {link} GB/s ({frames.label(best)}, by {fmt.words(best.estimate)})."


def large_batches(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return the accuracy of the best techniques or, without any, over the cells' batches."""
    if said := _techniques(tables.remedies):
        return said
    if "reference" not in cells:
        return None
    known = cells[cells["test_accuracy"].notna()]
    for first in rows_of(known[known["reference"].eq(True)].head(1)):
        own = known[known["recipe"] == first.recipe].sort_values("global_batch_size")
        last: Any = next(own.tail(1).itertuples())
        ends = dict.fromkeys(
            f"{int(row.global_batch_size)} reaches {fmt.percent(row.test_accuracy)}"
            for row in (first, last)
        )
        return f"Batch {', '.join(ends)} ({first.recipe}, {seeds(first.seeds)})."
    return None


def _techniques(table: pd.DataFrame) -> Answer:
    """Return the best SGD at the smallest batch, and the best technique at each larger one."""
    rows = {batch: best_remedy.best(table, batch) for batch in sorted(set(table["global_batch"]))}
    small = next(iter(rows), None)
    sgd: Any = best_remedy.best(table, small, sgd=True) if small else None
    larger = [row for batch, row in rows.items() if row and batch != small]
    if not sgd or not larger:
        return None
    techniques = [
        f"{'' if row.remedy == before else row.remedy} at {row.global_batch:.0f} "
        f"{fmt.percent(row.test_accuracy)}".strip()
        for row, before in zip(larger, [None, *(row.remedy for row in larger)], strict=False)
    ]
    best = f"SGD at {small} reaches {fmt.percent(sgd.test_accuracy)}"
    return f"{best}; by held-out images {', '.join(techniques).replace('_', ' ')}."


def set_epoch(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Describe whether orders change from epoch to epoch, with and without set_epoch."""
    drawn = synchronization.sampler.rows(tables, cells)
    if drawn.empty:
        return None
    said = {called: same["different"].iloc[0] for called, same in drawn.groupby("set_epoch")}
    epochs = str(drawn["epochs"].max())
    if said.get(False) == "1" and said.get(True) == epochs:
        return (
            "Without set_epoch every epoch repeats the first one’s order: the seed of the shuffle "
            f"is seed + epoch. With it all {epochs} epochs differ."
        )
    parts = [
        f"{count} {'with' if called else 'without'} set_epoch"
        for called, count in sorted(said.items(), reverse=True)
    ]
    return f"Different orders of a rank in {epochs} epochs: {', '.join(parts)}."


def messages(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return whether DDP sends more than gradients in a step, in bytes."""
    sent = synchronization.messages.rows(tables, cells)
    ddp = sent[(sent["way"] == "ddp") & (sent["phase"] != "start")]
    if ddp.empty:
        return None
    others = ddp[ddp["content"] != "gradients"]
    gradients = fmt.data(ddp.loc[ddp["content"] == "gradients", "bytes"].sum())
    if others.empty:
        return f"Yes: DDP sends {gradients} of gradients in a step, and nothing else."
    contents = " and ".join(dict.fromkeys(others["content"]))
    return f"No: {contents} too, {fmt.data(others['bytes'].sum())} beside {gradients} of gradients."


def buffers(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return whether ranks end with equal parameters, and how far their statistics drift apart."""
    found = synchronization.buffers.rows(tables, cells)
    if found.empty:
        return None
    same = found["parameters"].eq(synchronization.IDENTICAL).all()
    said = "For parameters yes, bit for bit." if same else "No: parameters differ between ranks."
    drift = found.set_index("buffers")["variance_drift_max"]
    if not drift.reindex(["broadcast", "local"]).gt(0).all():
        return said
    apart = f"variances end {fmt.percent(drift['broadcast'])} apart"
    return f"{said} Not for running statistics: {apart}, {fmt.percent(drift['local'])} if not sent."


def part_b(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Return the accuracy loss of the last quantization stage, also for ResNet-18."""
    table, resnet = tables.quantization, tables.quantization_resnet
    there = [stage for stage in STAGES[1:] if stage in set(table["stage"])]
    if not there:
        return None
    what = there[-1].replace("+activations+bias", ", activations and biases").replace("+", " and ")
    said = [f"Int8 {what}: {_cost(table[table['stage'] == there[-1]])}"]
    per_tensor = resnet[(resnet["stage"] == there[-1]) & (resnet["weight_scales"] == "tensor")]
    if not per_tensor.empty:
        said.append(f"ResNet-18: {_cost(per_tensor)}")
    return f"{'; '.join(said)}."


def _cost(rows: pd.DataFrame) -> str:
    found = cost(rows)
    ends = f"{found.accuracy_percent:.2f} % against {found.float32_percent:.2f} % in float32"
    return f"{ends} ({found.difference} points, {seeds(found.seeds)})"


ANSWERS: dict[str, Callable[[StudyTables, pd.DataFrame], Answer]] = {
    "Q1": batch_size,
    "Q2": speedup,
    "Q3.1": communication,
    "Q3.2": bandwidth,
    "Q4": large_batches,
    "Q5": set_epoch,
    "Q6": messages,
    "Q7": buffers,
    "B": part_b,
}
