"""Question 1: why larger batches are faster on one GPU."""

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.claims.phrases import NO_TRACE, batch, extremes, measured, span_of_shares
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.strategy import OWN
from scaling.tables import noise
from scaling.tables.schema import StudyTables, rows_of

HALF = 0.5
OF_A_COMMAND = "A command of one's own does not tell how long it waits for data, nor its kernels."
NOT_IN_MEMORY = (
    "These cells wait for data, and their records have no steps in memory: measure them again, "
    "with `training.instrumented_iterations` above 0."
)


def answer(tables: StudyTables) -> Answer:
    """Answer by what a step costs whatever its size; two claims on each recipe on one GPU."""
    steps = tables.timing[[*CELL_KEYS, "iterations"]]
    work = _alone(measured(tables.epoch_parts, "work_seconds").merge(steps, on=CELL_KEYS))
    claims, costs = [], []
    times = _alone(measured(tables.timing, "epoch_seconds"))
    for recipe, cells in times.groupby("recipe", sort=False):
        about, own = f"{recipe}, 1 GPU", work[work["recipe"] == recipe]
        if set(cells["strategy"]) == {OWN.name}:
            claims.append(FASTER.missing(about, OF_A_COMMAND))
        elif len(cells) > 1:
            claims += [_faster(about, own), _gaps(about, str(recipe), tables)]
        if (cost := _cost_of_a_step(own)) > 0:
            costs.append(f"{fmt.significant(1000 * cost)} ms with {recipe}")
    text = f"A step costs {', '.join(costs[:3])}, whatever its size; larger batches take fewer."
    waits = _waits(_alone(measured(tables.utilization, "loading_share")))
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    return Answer(f"{text}{waits}" if costs else None, claims or [FASTER.missing("", add)])


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
        share = span_of_shares(own["loading_share"])
        return f" From {batch(own.iloc[0])} {recipe} waits for data ({share})."
    return ""


FASTER = Hypothesis(
    "Q1-faster",
    "Larger batches make the steps of an epoch faster on one GPU.",
    table="epoch_parts",
    test="Epochs on batches in memory (the epoch itself where it waits for less than 2 %) at each "
    "larger batch and at the smallest. Supported: the larger batch is faster by more than noise; "
    "refuted: slower by more.",
)


def _faster(about: str, work: pd.DataFrame) -> Claim:
    if len(work) < 2:
        return FASTER.missing(about, NOT_IN_MEMORY)
    small, *cells = rows_of(work)
    fast, _ = extremes(work.iloc[1:], "work_seconds")
    ratios = ((cell, noise.ratio(small, cell, "work_seconds")) for cell in cells)
    return FASTER.claim(
        about,
        f"{fmt.seconds(fast.work_seconds)} with {batch(fast)}, {fmt.seconds(small.work_seconds)} "
        f"with {batch(small)}, without waiting for data.",
        parts=[(cell, ratio.low > 1, ratio.high < 1) for cell, ratio in ratios],
    )


GAPS = Hypothesis(
    "Q1-gaps",
    "Small batches are slow because the GPU idles between kernels.",
    table="device_time",
    test="Steps of an epoch on batches in memory, at the smallest batch and at the one where they "
    "take the shortest time. Seconds without a kernel that the latter saves, over all seconds it "
    "saves, with the lowest and the highest over the seeds. A gap below 0, of traced steps that "
    "took longer than timed ones, counts as 0. Supported: at least half by either extreme; "
    "refuted: less than half by both. Of one seed's trace half to double is taken.",
)


def _gaps(about: str, recipe: str, tables: StudyTables) -> Claim:
    table = tables.device_time
    rows = table[(table["recipe"] == recipe) & (table["gpus"] == 1)].drop_duplicates("batch_size")
    steps = tables.timing[[*CELL_KEYS, "iterations"]].dropna()
    traced = rows[rows["gap_seconds"].notna()].merge(steps, on=CELL_KEYS)
    if len(traced) < 2:
        on_cpu = "a CPU runs no kernels" in set(rows["note"])
        add = "A CPU runs no kernels; set `device` to `cuda`." if on_cpu else NO_TRACE
        return GAPS.missing(about, add)
    traced = traced.assign(seconds=traced["step_seconds"] * traced["iterations"])
    (small, _), (fast, _) = extremes(traced, "batch_size"), extremes(traced, "seconds")
    saved = small.seconds - fast.seconds
    if saved == 0:
        said = f"The steps of the smallest batch, {batch(small)}, are fastest."
        return GAPS.claim(about, said, unclear="nothing is to be explained")
    share, least, most = (
        (max(0, of_small) * small.iterations - max(0, of_fast) * fast.iterations) / saved
        for of_small, of_fast in (
            (small.gap_seconds, fast.gap_seconds),
            (small.gap_seconds_min, fast.gap_seconds_max),
            (small.gap_seconds_max, fast.gap_seconds_min),
        )
    )
    unknown = noise.LONE_READING if min(small.count, fast.count) == 1 else 1.0
    busy, usual = (fmt.seconds(row.busy_seconds * row.iterations) for row in (fast, small))
    return GAPS.claim(
        about,
        f"Gaps are {fmt.percent(share)} of the {fmt.seconds(saved)} that {batch(fast)} saves over "
        f"{batch(small)}; kernels run for {busy} instead of {usual}.",
        holds=least / unknown >= HALF,
        fails=most * unknown < HALF,
    )
