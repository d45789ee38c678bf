"""Questions 1 to 3: larger batches, more GPUs, and where the time of an epoch goes."""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim import BATCH, Answer, Claim, Hypothesis, extremes, label
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.strategy import OWN
from scaling.tables import ratios
from scaling.tables.measurements import TRACE
from scaling.tables.ratios import UNLIKE
from scaling.tables.schema import StudyTables, by_configuration, rows_of

HALF = 0.5
NO_STEPS = (
    "These records have no steps in memory: measure the cells again, with "
    "`training.instrumented_iterations` above 0."
)
"""What a claim says that needs steps with instruments, if there are none."""
OF_A_COMMAND = "A command of one's own does not tell how long it waits for data, nor its kernels."
LARGER = Hypothesis(
    "Q1-faster",
    "Larger batches make the steps of an epoch faster on one GPU.",
    test="Epochs on batches in memory (the epoch itself where it waits for less than 2 %) at each "
    "larger batch and at the smallest. Supported: the larger batch is faster by more than noise; "
    "refuted: slower by more.",
)
GAPS = Hypothesis(
    "Q1-gaps",
    "In a step of a small batch the GPU is idle most of the time.",
    test="A step of the smallest batch in memory, traced: seconds without a kernel over all its "
    "seconds, with the lowest and the highest over the seeds, of one seed half and double. "
    "Supported: at least half by either extreme; refuted: less than half by both.",
)


def batches(tables: StudyTables) -> Answer:
    """Answer by what a step costs besides its images; two claims on each recipe on one GPU."""
    steps = tables.timing[[*CELL_KEYS, "iterations"]]
    work = _alone(measured(tables.epoch_parts, "work_seconds").merge(steps, on=CELL_KEYS))
    claims, costs = [], []
    times = _alone(measured(tables.timing, "epoch_seconds"))
    for recipe, cells in times.groupby("recipe", sort=False):
        about, own = f"{recipe}, 1 GPU", work[work["recipe"] == recipe]
        if set(cells["strategy"]) == {OWN.name}:
            claims.append(LARGER.missing(about, OF_A_COMMAND))
        elif len(cells) > 1:
            traced = tables.device_time[tables.device_time["recipe"] == recipe]
            claims += [_larger(about, own), _gaps(about, traced[traced["gpus"] == 1])]
        if (cost := _cost_of_a_step(own)) > 0:
            costs.append(f"{fmt.significant(1000 * cost)} ms with {recipe}")
    text = f"Each step costs {', '.join(costs[:3])}, besides its images; larger batches take fewer."
    text += _waits(_alone(measured(tables.utilization, "loading_share")))
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    return Answer(text if costs else None, claims or [LARGER.missing("", add)])


def _alone(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells on one GPU by batch size; a run there serves every strategy."""
    one = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    return one.sort_values("batch_size", kind="stable")


def _cost_of_a_step(work: pd.DataFrame) -> float:
    """Return the seconds of the smallest batch's step beyond its images at the fastest rate."""
    steps = work["work_seconds"] / work["iterations"]
    beyond = steps - work["batch_size"] * (steps / work["batch_size"]).min()
    return float(beyond.iloc[0]) if len(beyond) else 0.0


def _waits(cells: pd.DataFrame) -> str:
    """Return a sentence on the first recipe that waits for data for most of its epochs."""
    cells = cells[cells["loading_share"] >= HALF]
    for recipe, own in cells.groupby("recipe", sort=False):
        share = span(own["loading_share"])
        return f" From {batch(own.iloc[0])} {recipe} waits for data ({share})."
    return ""


def _larger(about: str, work: pd.DataFrame) -> Claim:
    if len(work) < 2:
        return LARGER.missing(about, NO_STEPS)
    small, *cells = rows_of(work)
    fast, _ = extremes(work.iloc[1:], "work_seconds")
    paired = work.iloc[1:].assign(**work.iloc[0].add_prefix("small_"))
    found = rows_of(ratios.ratios(paired, "small_", "", "work_seconds"))
    parts = [(cell, one.low > 1, one.high < 1) for cell, one in zip(cells, found, strict=True)]
    said = ", ".join(f"{fmt.seconds(row.work_seconds)} with {batch(row)}" for row in (fast, small))
    return LARGER.claim(about, f"{said}, without waiting for data.", parts=parts)


def _gaps(about: str, rows: pd.DataFrame) -> Claim:
    traced = rows[rows["gap_seconds"].notna()]
    if traced.empty:
        on_cpu = "a CPU runs no kernels" in set(rows["note"])
        add = "A CPU runs no kernels; set `device` to `cuda`." if on_cpu else NO_STEPS
        return GAPS.missing(about, add)
    small, large = extremes(traced, "batch_size")
    unknown = ratios.LONE_READING if small.count == 1 else 1.0
    said = (
        f"{fmt.percent(max(0, row.gap_seconds) / row.step_seconds)} with {batch(row)}"
        for row in (small, large)
    )
    return GAPS.claim(
        about,
        f"Without a kernel: {', '.join(said)}.",
        holds=small.gap_seconds_min / unknown >= HALF * small.step_seconds,
        fails=small.gap_seconds_max * unknown < HALF * small.step_seconds,
    )


SOONER = Hypothesis(
    "Q2-faster",
    "Several GPUs finish an epoch sooner than one.",
    test="The speedup on the most GPUs, at each batch size. Supported: above 1 by more than noise; "
    "refuted: below 1 by more.",
)


def speedups(tables: StudyTables) -> Answer:
    """Answer by the speedups on the most GPUs; a claim for each recipe and strategy with ratios."""
    table = tables.speedup
    claims = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        most = most_gpus(cells.dropna(subset="speedup"))
        if len(most):
            claims.append(_sooner(f"{recipe}/{strategy}", most))
        elif not cells["note"].str.startswith(UNLIKE).any():
            add = "Add 1 to `grid.gpus`, or the batch sizes of one GPU to `grid.batch_sizes`."
            claims.append(SOONER.missing(f"{recipe}/{strategy}", add))
    missing = SOONER.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_weak(table), claims or [missing])


def _weak(table: pd.DataFrame) -> str | None:
    """Return the weak speedup of each configuration, and the strong one of the best."""
    found = by_efficiency(table)
    if not found:
        return None
    said = [f"{name} {span(rows['speedup'], fmt.times)}" for name, rows in found[:3]]
    why = (f"{one} (one process launches for all GPUs)" if "/dp " in one else one for one in said)
    best = found[0][1]
    known = best["fixed_global_batch_speedup"].dropna()
    strong = f" At one global batch (strong): {span(known, fmt.times)}." if len(known) else ""
    on = fmt.gpus(best["gpus"].iloc[0])
    return f"Weak scaling: the batch per GPU is fixed. On {on}: {', '.join(why)}.{strong}"


def by_efficiency(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells on the most GPUs by configuration, the most efficient first."""
    known = most_gpus(table[(table["gpus"] > 1) & table["speedup"].notna()])
    named = [(f"{recipe}/{strategy}", rows) for recipe, strategy, rows in by_configuration(known)]
    return sorted(named, key=lambda one: -one[1]["efficiency"].median())


def _sooner(name: str, most: pd.DataFrame) -> Claim:
    least, best = extremes(most, "speedup")
    ends = fmt.span(least.speedup_low, least.speedup_high)
    sentence = f"{fmt.times(least.speedup)} ({ends}) with {batch(least)}"
    if best.Index != least.Index:
        sentence += f", {fmt.times(best.speedup)} with {batch(best)}"
    parts = [(cell, cell.speedup_low > 1, cell.speedup_high < 1) for cell in rows_of(most)]
    return SOONER.claim(f"{name}, {fmt.gpus(least.gpus)}", f"{sentence}.", parts=parts)


PARTS = {
    "utilization": "arithmetic at peak",
    "slower_share": "kernels below peak",
    "idle_share": "GPU idle",
    "communication_share": "exposed communication",
    "loading_share": "waiting for data",
    "unknown_share": "not known",
}
"""The parts of an epoch in order, by the columns of utilization.csv with their shares."""
COMPUTED = ["utilization", "slower_share"]
"""Those in which kernels compute."""
COMPUTING = Hypothesis(
    "Q3.1-computing",
    "Computing takes most of an epoch on several GPUs.",
    test="Arithmetic at peak and kernels below it, as shares of the epoch, at each batch size. "
    "Supported: together more than half; refuted: less than half, also with all that is not known.",
    more="a trace",
)
TRAVELLING = Hypothesis(
    "Q3.2-travelling",
    "On their way, gradients reach at least half of the bandwidth of all-reduces alone.",
    test="Bytes of an epoch over the seconds of its communication kernels, over the peak measured "
    "in the same study, on the most GPUs. Without a trace, by subtraction beyond its noise, which "
    "counts all that does not shrink with N, so that gradients may be faster. More than the peak "
    "is left out. Supported: half or more; refuted: less, by a trace.",
)


def parts(tables: StudyTables) -> Answer:
    """Answer by the largest part of an epoch; a claim a configuration on the most GPUs."""
    claims = []
    table = tables.utilization[tables.utilization["gpus"] > 1]
    for recipe, strategy, rows in by_configuration(table):
        known = measured(rows, "communication_share")
        cells = most_gpus(rows if known.empty else known)
        about = f"{recipe}/{strategy}, {fmt.gpus(cells['gpus'].iloc[0])}"
        claims.append(_computing(about, cells.dropna(subset="slower_share")))
    missing = COMPUTING.missing("", "Add 2 or more to `grid.gpus`.")
    return Answer(_largest(table), claims or [missing])


def _largest(table: pd.DataFrame) -> str | None:
    """Return the largest part of a median epoch and that of communication, on several GPUs."""
    said = []
    for recipe, strategy, rows in by_configuration(table.dropna(subset="communication_share")):
        median = rows[list(PARTS)].median()
        most = str(median.idxmax())
        share = span(rows["communication_share"])
        part = f"{PARTS[most]} ({fmt.percent(median[most])})"
        said.append(f"{recipe}/{strategy} {part}, communication {share}")
    return f"Median over b: {'; '.join(said[:3])}." if said else None


def _computing(about: str, shares: pd.DataFrame) -> Claim:
    low = shares[COMPUTED].sum(axis=1)
    known = shares.assign(low=low, high=low + shares["unknown_share"]).sort_values("batch_size")
    cells = list(rows_of(known))
    if not cells:
        return COMPUTING.missing(about, NO_STEPS)
    parts = [(cell, cell.low > HALF, cell.high < HALF) for cell in cells]
    return COMPUTING.claim(about, " ".join(map(_parts, [cells[0], *cells[1:][-1:]])), parts=parts)


def _parts(cell: Any) -> str:
    """Name the computing and all other parts that take more than 5 % of a cell's epoch."""
    others = {part: getattr(cell, name) for name, part in PARTS.items() if name not in COMPUTED}
    said = [f"{fmt.percent(share)} {part}" for part, share in others.items() if share > 0.05]
    return f"{batch(cell)}: {', '.join([f'{fmt.percent(cell.low)} computing', *said])}."


def bandwidth(tables: StudyTables) -> Answer:
    """Answer by the slowest and fastest gradients; a claim a configuration on the most GPUs."""
    claims, known = [], [tables.bandwidth[:0]]
    for recipe, strategy, rows in by_configuration(tables.bandwidth):
        cells, about = most_gpus(rows), f"{recipe}/{strategy}, {fmt.gpus(rows['gpus'].max())}"
        known.append(measured(cells[cells["utilization"] <= 1], "utilization"))
        claims.append(_travelling(about, known[-1]))
    missing = TRAVELLING.missing("", "Add 2 or more to `grid.gpus`.")
    whole = pd.concat(known, ignore_index=True)
    if whole.empty:
        return Answer(None, claims or [missing])
    worst, best = extremes(whole, "utilization")
    said = f"At {fmt.percent(best.utilization)} of the {fmt.significant(best.peak_gb_per_s)} GB/s "
    said += f"of all-reduces alone ({label(best)}, by {fmt.words(best.estimate)})"
    if worst.utilization < best.utilization:
        said += f", at the slowest {fmt.percent(worst.utilization)} ({label(worst)})"
    return Answer(f"{said}.", claims)


def _travelling(about: str, cells: pd.DataFrame) -> Claim:
    if cells.empty:
        return TRAVELLING.missing(about, NO_STEPS)
    worst, best = extremes(cells, "utilization")
    said = f"{fmt.significant(best.bandwidth_gb_per_s)} of {fmt.significant(best.peak_gb_per_s)} "
    said += f"GB/s ({fmt.percent(best.utilization)}) with {batch(best)}"
    if worst.Index != best.Index:
        said += f", {fmt.percent(worst.utilization)} with {batch(worst)}"
    traced = best.estimate == TRACE
    said += ", by the trace." if traced else ", by subtraction, which overstates the time."
    parts = [(cell, cell.utilization >= HALF, cell.estimate == TRACE) for cell in rows_of(cells)]
    return TRAVELLING.claim(about, said, parts=parts)


def batch(cell: Any) -> str:
    """Format the batch size of a cell: `b = 512`."""
    return f"{BATCH}{cell.batch_size}"


def span(values: pd.Series, write: Callable[[float], str] = fmt.percent) -> str:
    """Format the smallest and largest of some values, not below 0: `10–20 %`, `1.83–1.98×`."""
    ends = values.clip(lower=0).agg(["min", "max"]).map(write)
    return re.sub(" %–|×–", "–", "–".join(ends.unique()))


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of ok cells with a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def most_gpus(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows on the most GPUs that the table has."""
    return table[table["gpus"] == table["gpus"].max()]
