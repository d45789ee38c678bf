"""Question 2: which scaling it is, by what the three views of the speedup measure."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.tables import noise
from scaling.tables.io import with_single_gpu
from scaling.tables.schema import by_configuration

QUESTION = "Q2"
ONE_MEASUREMENT = (
    "With I(1) iterations of an epoch on 1 GPU, a partial last batch alone moves weak speedup / "
    "strong speedup between 1 − 1/I(1) and 1 + N/I(1). Supported: it lies there in every cell on "
    "several GPUs; refuted: it lies outside in one."
)
OTHER_TRAINING = (
    "The cells on the most GPUs that have T(1, N·b), both baselines measured more than once. "
    "Supported: the ranges of T(1, b) and T(1, N·b) are disjoint in at least half of them; "
    "refuted: they overlap in all; undecided: between, or there is no such cell."
)
LARGER_BATCH = (
    "On the most GPUs, the ranges of the speedup (the extremes of both times paired) at the "
    "smallest and at the largest batch that has one. Supported: disjoint, and that of the largest "
    "is higher; refuted: disjoint, and it is lower; undecided: they overlap, or a time was "
    "measured only once."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """Three claims for each recipe and strategy on several GPUs, from speedup.csv."""
    table = tables["speedup"]
    file = tables.file("speedup")
    made = []
    for recipe, strategy, cells in by_configuration(table[table["gpus"] > 1]):
        line, known = f"{recipe}-{strategy}", cells[cells["speedup"].notna()]
        name = f"{recipe}/{strategy}"
        if known.empty:
            lacks = (
                f"{name}: which scaling it is cannot be said, as no cell on several GPUs has both "
                "its own time and that of one GPU at the same batch size."
            )
            made.append(undecided(f"Q2-{line}", QUESTION, lacks, file, ONE_MEASUREMENT))
            continue
        most = known[known["gpus"] == known["gpus"].max()]
        timing = tables["timing"]
        made += [
            _one_measurement(f"Q2-names-{line}", name, known, timing, file),
            _other_training(f"Q2-global-batch-{line}", name, most, timing, file),
            _larger_batch(f"Q2-batch-{line}", name, most, file),
        ]
    if made:
        return made
    lacks = "Which scaling it is cannot be said: the study has no cell on several GPUs."
    return [undecided("Q2", QUESTION, lacks, file, ONE_MEASUREMENT)]


def _one_measurement(
    id: str, name: str, known: pd.DataFrame, timing: pd.DataFrame, file: str
) -> Claim:
    """That “strong” and “weak” are two names of one measurement."""
    cells = with_single_gpu(known, timing, "batch_size")
    cells["ratio"] = cells["weak_speedup"] / cells["speedup"]
    cells = cells[cells["ratio"].notna() & cells["single_iterations"].notna()]
    if cells.empty:
        lacks = (
            f"{name}: the weak view, per step, cannot be compared with the strong one, per epoch, "
            "as the number of steps is unknown."
        )
        return undecided(id, QUESTION, lacks, file, ONE_MEASUREMENT)
    above, below = cells["gpus"] / cells["single_iterations"], 1 / cells["single_iterations"]
    rounding = 1e-9
    outside = cells[
        (cells["ratio"] > 1 + above + rounding) | (cells["ratio"] < 1 - below - rounding)
    ]
    figures: dict[str, Any] = {
        "cells": len(cells),
        "speedup_min": cells["speedup"].min(),
        "speedup_max": cells["speedup"].max(),
        "weak_speedup_min": cells["weak_speedup"].min(),
        "weak_speedup_max": cells["weak_speedup"].max(),
        "weak_over_strong_min": cells["ratio"].min(),
        "weak_over_strong_max": cells["ratio"].max(),
    }
    strong = fmt.span(figures["speedup_min"], figures["speedup_max"])
    weak = fmt.span(figures["weak_speedup_min"], figures["weak_speedup_max"])
    sentence = (
        f"{name}: with training set and batch per GPU held fixed an epoch is {strong} times as "
        f"fast as on one GPU, which is called strong scaling; a step handles {weak} times the "
        "images per second, which is called weak scaling. "
    )
    if outside.empty:
        apart = (cells["ratio"] - 1).abs().max()
        sentence += (
            f"These are one measurement: in {fmt.plural(len(cells), 'cell')} the two differ by at "
            f"most {fmt.percent(apart)}, no more than a partial last batch explains."
        )
    else:
        worst = next(outside.loc[[(outside["ratio"] - 1).abs().idxmax()]].itertuples())
        figures |= {"outside": len(outside), "worst": fmt.cell_name(worst)}
        sentence += (
            f"These are not one measurement here: the second is {fmt.times(worst.ratio)} the first "
            f"({fmt.cell_name(worst)}), more than a partial last batch explains, so N GPUs did not "
            "take N times fewer steps."
        )
    return Claim(
        id,
        QUESTION,
        sentence,
        judge(outside.empty, not outside.empty),
        [Evidence(file, figures, ONE_MEASUREMENT)],
    )


def _other_training(
    id: str, name: str, most: pd.DataFrame, timing: pd.DataFrame, file: str
) -> Claim:
    """That the speedup at a fixed global batch, which trains the same, is another one."""
    keys = {f"single_{key}": f"same_{key}" for key in timing.columns}
    cells = most.assign(global_batch_size=most["gpus"] * most["batch_size"])
    cells = with_single_gpu(cells, timing, "global_batch_size").rename(columns=keys)
    cells = with_single_gpu(cells, timing, "batch_size")
    cells = cells[cells["fixed_global_batch_speedup"].notna()]
    if cells.empty:
        lacks = (
            f"{name}: with the global batch held fixed, so that training is the same, no speedup "
            "can be stated: no cell on the most GPUs has its global batch on one GPU, T(1, N·b)."
        )
        return undecided(id, QUESTION, lacks, file, OTHER_TRAINING)
    cells["apart"] = (cells["fixed_global_batch_speedup"] / cells["speedup"] - 1).abs()
    repeated = cells[(cells["single_count"] > 1) & (cells["same_count"] > 1)]
    clear = repeated[[not _same_baseline(row) for row in repeated.itertuples()]]
    most_differ = len(clear) > 0 and 2 * len(clear) >= len(repeated)
    chosen = clear if len(clear) else repeated if len(repeated) else cells
    cell = next(chosen.loc[[chosen["apart"].idxmax()]].itertuples())
    figures: dict[str, Any] = {
        "cell": fmt.cell_name(cell),
        "speedup": cell.speedup,
        "efficiency": cell.efficiency,
        "fixed_global_batch_speedup": cell.fixed_global_batch_speedup,
        "fixed_global_batch_efficiency": cell.fixed_global_batch_efficiency,
        "cells_compared": len(repeated),
        "cells_apart": len(clear),
    }
    ratios = (
        f"{fmt.times(cell.fixed_global_batch_speedup)} (efficiency "
        f"{fmt.percent(cell.fixed_global_batch_efficiency)}) against one GPU with the same global "
        f"batch of {cell.global_batch_size}, {fmt.times(cell.speedup)} (efficiency "
        f"{fmt.percent(cell.efficiency)}) against one GPU with b\u00a0=\u00a0{cell.batch_size}"
    )
    if len(clear):
        sentence = (
            f"{name}: both views grow the global batch with N, so they compare different "
            f"trainings. With the same training on both sides the speedup is another"
            f"{'' if most_differ else ', if only in few cells'}: {ratios} "
            f"({fmt.cell_name(cell)}; the baselines differ in {len(clear)} of "
            f"{fmt.plural(len(repeated), 'cell')} on as many GPUs)."
        )
    elif len(repeated):
        sentence = (
            f"{name}: holding the global batch fixed makes no difference that can be told from "
            f"noise in any of {fmt.plural(len(repeated), 'cell')}: at most {ratios}."
        )
    else:
        sentence = (
            f"{name}: whether a fixed global batch gives another speedup is undecided, as every "
            f"time was measured once: {ratios} ({fmt.cell_name(cell)})."
        )
    verdict = judge(most_differ, len(clear) == 0 and len(repeated) > 0)
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, OTHER_TRAINING)])


def _same_baseline(row: Any) -> bool:
    return noise.ranges_overlap(
        row.single_epoch_seconds_min,
        row.single_epoch_seconds_max,
        row.same_epoch_seconds_min,
        row.same_epoch_seconds_max,
    )


def _larger_batch(id: str, name: str, most: pd.DataFrame, file: str) -> Claim:
    """That GPUs are used better with a larger batch on each."""
    ordered = list(most.sort_values("batch_size").itertuples())
    small, large = ordered[0], ordered[-1]
    gpus = fmt.gpus(int(large.gpus))
    if len(ordered) == 1:
        lacks = (
            f"{name}: whether a larger batch scales better cannot be said, as only "
            f"b\u00a0=\u00a0{small.batch_size} has a speedup on {gpus}."
        )
        return undecided(id, QUESTION, lacks, file, LARGER_BATCH)
    figures: dict[str, Any] = {}
    for which, row in (("smallest", small), ("largest", large)):
        figures |= {
            f"{which}_batch_size": row.batch_size,
            f"{which}_speedup": row.speedup,
            f"{which}_speedup_min": row.speedup_min,
            f"{which}_speedup_max": row.speedup_max,
            f"{which}_efficiency": row.efficiency,
        }
    known = pd.notna(small.within_spread) and pd.notna(large.within_spread)
    known = known and small.count > 1 and large.count > 1
    higher = known and large.speedup_min > small.speedup_max
    lower = known and large.speedup_max < small.speedup_min
    word = "better" if higher else "worse, not better," if lower else "neither clearly better nor"
    sentence = (
        f"{name}: {gpus} scale {word}{'' if higher or lower else ' clearly worse'} with a larger "
        f"batch on each: efficiency {fmt.percent(large.efficiency)} "
        f"({fmt.times(large.speedup)}, {fmt.span(large.speedup_min, large.speedup_max)}) with "
        f"b\u00a0=\u00a0{large.batch_size}, {fmt.percent(small.efficiency)} "
        f"({fmt.times(small.speedup)}, {fmt.span(small.speedup_min, small.speedup_max)}) with "
        f"b\u00a0=\u00a0{small.batch_size}."
    )
    return Claim(
        id, QUESTION, sentence, judge(higher, lower), [Evidence(file, figures, LARGER_BATCH)]
    )
