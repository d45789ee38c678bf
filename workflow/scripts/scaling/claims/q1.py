"""Question 1: why larger batches are faster on one GPU."""

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, above_one
from scaling.claims.phrases import NO_TRACE, batch, extremes, label, measured
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
    """Answer by the steps of small batches; claims on each recipe on one GPU."""
    times = measured(tables.timing, "epoch_seconds")
    work = measured(tables.epoch_parts, "work_seconds")
    claims = []
    for recipe, cells in _alone(times).groupby("recipe", sort=False):
        if set(cells["strategy"]) == {OWN.name}:
            claims.append(FASTER.missing(f"{recipe}, 1 GPU", OF_A_COMMAND))
        elif len(cells) > 1:
            about, own = f"{recipe}, 1 GPU", _alone(work[work["recipe"] == recipe])
            claims += [_faster(about, own), _gaps(about, str(recipe), tables)]
    add = "Add 1 to `grid.gpus` and a second size to `grid.batch_sizes`."
    return Answer(_text(tables), claims or [FASTER.missing("", add)])


def _alone(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells on one GPU by batch size; a run there serves every strategy."""
    one = cells[cells["gpus"] == 1].drop_duplicates(["recipe", "batch_size"])
    return one.sort_values("batch_size", kind="stable")


def _text(tables: StudyTables) -> str | None:
    """Compare a step of the two smallest batches, and name the worst data wait.

    Steps are without waiting for data where that is known.
    """
    timed = measured(tables.timing, "epoch_seconds").merge(
        tables.epoch_parts[[*CELL_KEYS, "work_seconds"]], how="left", on=CELL_KEYS
    )
    single = timed[timed["gpus"] == timed["gpus"].min()]
    parts = []
    for recipe, rows in single.groupby("recipe", sort=False):
        seconds = rows["work_seconds"].fillna(rows["epoch_seconds"])
        steps = (seconds / rows["iterations"]).groupby(rows["batch_size"]).median()
        if len(steps) > 1:
            small, larger, *_ = steps.index
            parts.append(f"{fmt.times(steps[larger] / steps[small])} with {recipe}")
    if not parts:
        return None
    said = (
        f"A step of {larger / small:g}× the images ({larger} for {small}) takes "
        f"{', '.join(parts[:3]).replace(' with', ' as long with', 1)}."
    )
    waits = measured(tables.utilization, "loading_share")
    if waits.empty:
        return said
    _, worst = extremes(waits, "loading_share")
    most = f"{fmt.percent(worst.loading_share)} ({label(worst)})"
    return f"{said} Waiting for data takes up to {most}."


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
    ratios = [noise.ratio([small], [cell], "work_seconds") for cell in cells]
    sentence = (
        f"{fmt.seconds(fast.work_seconds)} with {batch(fast)}, {fmt.seconds(small.work_seconds)} "
        f"with {batch(small)}, without waiting for data."
    )
    return FASTER.claim(about, sentence, parts=above_one(cells, ratios))


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
