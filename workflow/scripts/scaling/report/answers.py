"""The lab's questions, each answered in one sentence of a study's figures."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.report import frames
from scaling.report.overview import seeds, speedups, times_span
from scaling.tables.experiments import best_remedy
from scaling.tables.experiments.quantization_cost import cost
from scaling.tables.schema import StudyTables, by_configuration, rows_of

Answer = str | None


def batch_size(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """How the epoch of the fewest GPUs depends on its batch, and the longest wait for data."""
    timed = cells[(cells["status"] == "ok") & cells["epoch_seconds"].notna()]
    single = timed[timed["gpus"] == timed["gpus"].min()]
    if single["batch_size"].nunique() < 2:
        return None
    parts = []
    for recipe, rows in single.groupby("recipe", sort=False):
        rows = rows.set_index("batch_size")["epoch_seconds"]
        smallest, best = rows.index.min(), rows.idxmin()
        gain = fmt.times(rows[smallest].max() / rows.min())
        parts.append(f"{recipe}: {gain} faster at {best} than at {smallest}")
    waits: Any = next(timed.sort_values("loading_share", ascending=False).itertuples())
    most = (
        f"waiting for data takes up to {fmt.percent(waits.loading_share)} ({frames.label(waits)})"
    )
    return f"{'; '.join([*parts, most])}."


def speedup(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """The speedup of each configuration on the most GPUs."""
    found = speedups(cells)
    if not found:
        return None
    said = ", ".join(f"{name} {times_span(rows['speedup'])}" for name, rows in found)
    return f"On {fmt.gpus(found[0][1]['gpus'].iloc[0])}: {said}."


def communication(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """The share of exposed communication of each configuration on several GPUs."""
    known = cells[cells["communication_share"].notna() & (cells["gpus"] > 1)]
    if known.empty:
        return None
    said = []
    for recipe, strategy, rows in by_configuration(known):
        ends = rows["communication_share"].clip(lower=0).agg(["min", "max"]).map(fmt.percent)
        both = " to ".join(ends.unique()).replace(" % to", " to")
        said.append(f"{recipe}/{strategy} {both}")
    return f"Exposed communication, of an epoch: {', '.join(said)}."


def bandwidth(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """The best bandwidth of a cell, against the link's."""
    known = frames.bandwidth_estimates(tables)
    known = known[known["utilization"].notna() & (known["utilization"] <= 1)]
    if known.empty:
        return None
    best: Any = next(known.sort_values("utilization", ascending=False).itertuples())
    link = f"{fmt.percent(best.utilization)} of the link’s {fmt.significant(best.peak_gb_per_s)}"
    return f"At most {link} GB/s ({frames.label(best)}, by {fmt.estimate(best.estimate)})."


def large_batches(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """What the best techniques reach; where there are none, accuracy over the cells' batches."""
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
    """What the best SGD reaches at the smallest batch, the best technique at each larger one."""
    rows = {batch: best_remedy.best(table, batch) for batch in sorted(set(table["global_batch"]))}
    small = next(iter(rows), None)
    sgd: Any = best_remedy.best(table, small, sgd=True) if small else None
    larger = [row for batch, row in rows.items() if row and batch != small]
    if not sgd or not larger:
        return None
    told = [
        f"{row.remedy} at {row.global_batch:.0f} {fmt.percent(row.test_accuracy)}" for row in larger
    ]
    best = f"The best SGD at batch {small} reaches {fmt.percent(sgd.test_accuracy)}"
    return f"{best}; {', '.join(told).replace('_', ' ')}."


def set_epoch(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Whether orders change from epoch to epoch, with and without set_epoch."""
    drawn = frames.orders(tables)
    if drawn.empty:
        return None
    said = {told: same["different"].iloc[0] for told, same in drawn.groupby("set_epoch")}
    epochs = drawn["epochs"].max()
    parts = [
        f"{count} {'with' if told else 'without'} set_epoch"
        for told, count in sorted(said.items(), reverse=True)
    ]
    return f"Different orders of a rank in {epochs} epochs: {', '.join(parts)}."


def messages(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """The bytes that DDP sends in a step, against those of the gradients."""
    sent = frames.messages(tables)
    ddp = sent[(sent["way"] == "ddp") & (sent["phase"] != "start")]
    if ddp.empty:
        return None
    size, gradients = ddp["bytes"].sum(), ddp["gradient_bytes"].iloc[0]
    return (
        f"A step of DDP hands over {fmt.data(size)} in {int(ddp['messages'].sum())} messages; "
        f"the gradients are {fmt.data(gradients)}."
    )


def buffers(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """Whether ranks end with equal buffers, by how they are kept."""
    found = frames.ranks(tables)
    if found.empty:
        return None
    said = [f"{row.buffers.replace('_', ' ')} {row.hashes}" for row in rows_of(found)]
    return f"Parameters end {found['parameters'].iloc[0]}; buffers: {', '.join(said)}."


def part_b(tables: StudyTables, cells: pd.DataFrame) -> Answer:
    """What the last stage of quantization that there is costs, and costs ResNet-18."""
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
