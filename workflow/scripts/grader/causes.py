"""What is wrong with the figures of a study: the causes that explain most of them, one by one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from grader.cells import FORMULAS, Cells
from grader.definitions import BANDWIDTH, DEFINITIONS, Verdict
from grader.intervals import FUZZ, Interval
from grader.study import PRINTED, TIMES

CHANCE = 0.05
"""A cause is named that explains figures which luck would explain more seldom than this."""
SPREAD = 4.0
"""A figure that is wrong for no known reason may be anywhere within a factor of e⁴."""
SUSPECTS = 40
"""Cells or numbers of GPUs beyond these are not tried as causes: a study has a few dozen."""
LARGE = 1000
"""Of a study with more cells none are tried as exchanged, nor a time of one as wrong."""
FROM_TIMES = list(FORMULAS["implied"])
Wrong = dict[str, np.ndarray]


ROWS = {
    "rows_swapped": [*TIMES, *PRINTED],
    "times_swapped": TIMES,
    "figures_swapped": list(PRINTED),
}
"""What two cells may have exchanged, the likelier the later."""


@dataclass(frozen=True)
class Cause:
    """A mistake of mistakes.yaml, and the cells of the figures that it explains.

    `rule` stands for `{rule}` in its words, `quantity` is "" for a cause in the times. `found` and
    `expected` have an interval for each cell, `suspects` counts the figures that were unexplained.
    """

    name: str
    cells: np.ndarray
    quantity: str = ""
    rule: str = ""
    found: Interval | None = None
    expected: Interval | None = None
    suspects: int = 0
    resolved: Wrong = field(default_factory=dict)
    weight: float = 0.0


@dataclass(frozen=True)
class Slip:
    """A mistake of mistakes.yaml, and what it makes of each figure."""

    name: str
    values: Interval
    rule: str = ""


def slips(cells: Cells, one: Verdict) -> Iterator[Slip]:
    """Every slip of a quantity, by the definition that the study follows and then by others."""
    own = {one.source: one.values[0]}
    names = {"ring": "ring_for_dp", "strategy": "broadcast_for_ring"}
    for name, formula in DEFINITIONS.get(one.quantity, {}).items():
        if formula != one.source:
            own[formula] = cells.evaluate(formula) * one.constant
            yield Slip(names.get(name, "other_times"), own[formula], formula)
    special, common = FORMULAS["slips"][one.quantity], FORMULAS["slips"]["any"]
    if one.quantity not in DEFINITIONS:
        common = common + FORMULAS["slips"][BANDWIDTH]
    for key, formula in [*special, *common]:
        name, _, rule = key.partition(" of ")
        if formula != one.quantity:
            for base in own.values() if "value" in formula else [own[one.source]]:
                yield Slip(name, cells.evaluate(formula, value=base), rule)
    for m in sorted(set(cells.gpus.tolist()) - {1})[:SUSPECTS]:
        yield Slip("other_gpus", one.values[0].take(cells.of_batch(m)), f"{m} GPUs")
    factors = {x: cells.evaluate(f, value=cells.names["one"]) for x, f in special if "value" in f}
    for (x, first), (y, second) in combinations(factors.items(), 2):
        for base in own.values() if one.quantity == BANDWIDTH else ():
            yield Slip(f"{x};{y}", base * first * second)


def causes(cells: Cells, found: dict[str, Verdict]) -> list[Cause]:
    """Every cause, the one that explains most figures first; then what no cause explains."""
    wrong = {name: one.wrong.copy() for name, one in found.items()}
    blank = {name: one.open & bool(one.unchecked) for name, one in found.items()}
    tried = {
        name: [
            (slip, math.log(rank), meets, -np.log(_luck(one.said, slip.values)))
            for rank, slip in enumerate(slips(cells, one), start=2)
            if ((meets := one.said.meets(slip.values)) & (wrong[name] | blank[name])).any()
        ]
        for name, one in found.items()
        if (wrong[name] | blank[name]).any()
    }
    named = []
    while any(each.any() for each in [*wrong.values(), *blank.values()]):
        options = [
            *_of_rows(cells, found, wrong),
            *_of_times(cells, found, wrong),
            *(
                cause
                for name, options in tried.items()
                for cause in _of_slips(cells, found[name], options, wrong[name], blank[name])
            ),
        ]
        if not options:
            break
        best = max(options, key=lambda cause: cause.weight)
        named.append(best)
        for name, resolved in best.resolved.items():
            wrong[name] &= ~resolved
            blank[name] &= ~resolved
    for name, one in found.items():
        near = one.said.near(one.values[0])
        for words, rest in (("unexplained", wrong[name] & ~near), ("nearly", wrong[name] & near)):
            if rest.any():
                named.append(_explained(cells, Slip(words, one.values[0]), rest, one, rest))
    return named


def _of_slips(
    cells: Cells,
    one: Verdict,
    tried: list[tuple[Slip, float, np.ndarray, np.ndarray]],
    wrong: np.ndarray,
    blank: np.ndarray,
) -> Iterator[Cause]:
    """The slip that explains most of a quantity's wrong figures, or other rows that do.

    Figures without a definition (`blank`) have to agree on a slip.
    """
    suspects = wrong | blank
    best, most = None, -math.log(CHANCE)
    for slip, among, meets, surprise in tried:
        explained = suspects & meets
        if explained.sum() < (2 if blank.any() else 1):
            continue
        score = _beyond_luck(surprise, explained, suspects) - among
        if score > most + FUZZ:
            best, most = (slip, explained), score
    if best is not None:
        slip, explained = best
        if explained.sum() > 1:
            explained = explained | (suspects & one.said.near(slip.values))
        yield _explained(cells, slip, explained, one, suspects)
        return
    surprise = np.zeros(len(suspects))
    for index in np.flatnonzero(wrong)[:SUSPECTS]:
        same = (cells.gpus == cells.gpus[index]) | (cells.batch == cells.batch[index])
        same &= (cells.gpus > 1) == (cells.gpus[index] > 1)
        same[index] = False
        said = one.said.take(np.full(len(same), index))
        hits = same & said.meets(one.values[0])
        if hits.any():
            luck = _luck(said, one.values[0])[hits].min()
            surprise[index] = -np.log(min(1.0, luck * same.sum()))
    other = surprise > 0
    if other.any() and _beyond_luck(surprise, other, suspects) > -math.log(CHANCE):
        yield _explained(cells, Slip("another_row", one.values[0]), other, one, suspects)


def _beyond_luck(surprise: np.ndarray, explained: np.ndarray, suspects: np.ndarray) -> float:
    """How unlikely it is, as -log, that so many of the suspects are explained by luck alone."""
    m, k = int(suspects.sum()), int(explained.sum())
    choices = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
    return float(surprise[explained].sum()) - choices


def _explained(
    cells: Cells, slip: Slip, explained: np.ndarray, one: Verdict, suspects: np.ndarray
) -> Cause:
    # What concerns one of several batch sizes may as well be its T(1,b).
    known = one.said.known & (cells.gpus > 1)
    alone = len(set(cells.batch[explained])) == 1 < len(set(cells.batch[known]))
    alone &= not (one.said.meets(slip.values) | ~known).all()
    return Cause(
        slip.name,
        explained,
        one.quantity,
        slip.rule,
        one.said,
        one.values[0],
        int(suspects.sum()),
        {one.quantity: explained},
        float(explained.sum()) - 0.75 * alone,
    )


def _luck(said: Interval, value: Interval) -> np.ndarray:
    """The chance that a figure wrong for another reason meets `value`: their relative widths."""
    width = (said.high - said.low) + (value.high - value.low)
    size = np.minimum(np.abs(said.middle), np.abs(value.middle))
    share = np.where(np.isfinite(width) & (size > 0), width / size / SPREAD, 1.0)
    return np.clip(np.where(np.isnan(share), 1.0, share), 1e-6, 1.0)


def _of_rows(cells: Cells, found: dict[str, Verdict], wrong: Wrong) -> Iterator[Cause]:
    """Two cells whose times, figures or both stand in each other's row."""
    total = sum(int(each.sum()) for each in wrong.values())
    for i, j in combinations(_suspects(cells, wrong), 2):
        if cells.gpus[i] != cells.gpus[j] and cells.batch[i] != cells.batch[j]:
            continue
        for bonus, (name, columns) in enumerate(ROWS.items()):
            changed = cells.changed(columns, [i, j], [j, i])
            resolved = _resolved(changed, found, wrong)
            count = sum(int(each.sum()) for each in resolved.values())
            if count >= 2:
                place = np.isin(np.arange(len(cells.gpus)), [i, j])
                rule = f"{cells.gpus[j]} x {cells.batch[j]}"
                weight = count + 0.3 + 0.1 * bonus
                yield Cause(name, place, "", rule, None, None, total, resolved, weight)


def _suspects(cells: Cells, wrong: Wrong) -> list[int]:
    """The cells with wrong figures and those of their T(1,b); none where it would take long."""
    affected = np.logical_or.reduce(list(wrong.values()))
    single = (cells.gpus == 1) & np.isin(cells.batch, cells.batch[affected])
    found: list[int] = np.flatnonzero(affected | single).tolist()
    return found if len(found) <= SUSPECTS and len(single) <= LARGE else []


def _resolved(changed: Cells, found: dict[str, Verdict], wrong: Wrong) -> Wrong:
    """The wrong figures that are right in `changed`; none where others become wrong."""
    resolved = {}
    for name, one in found.items():
        again = replace(one, cells=changed)
        if (again.wrong & ~one.wrong).any():
            return {}
        resolved[name] = wrong[name] & ~again.wrong
    return resolved


def _of_times(cells: Cells, found: dict[str, Verdict], wrong: Wrong) -> Iterator[Cause]:
    """A time that at least two figures contradict, and agree on what it was."""
    total = sum(int(each.sum()) for each in wrong.values())
    suspects = _suspects(cells, wrong)
    for column, letter in (("epoch_seconds", "T"), ("epoch_seconds_without_loading", "W")):
        single, own = cells.names[f"{letter}1"], cells.names[letter]
        n, implied = cells.gpus, {"T1": list[Interval](), "T": list[Interval]()}
        for name, formulas in FORMULAS["implied"].items():
            said = found[name].said.where(wrong[name], found[name].said * np.nan)
            for time, formula in formulas.items() if letter in found[name].source else ():
                implied[time].append(cells.evaluate(formula, value=said, T=own, T1=single))
        for index in suspects if implied["T1"] else ():
            same, values = np.arange(len(n)) == index, implied["T"]
            if n[index] == 1:
                same, values = (cells.batch == cells.batch[index]) & (n > 1), implied["T1"]
            lows = np.concatenate([[np.nan], *(each.low[same] for each in values)])
            highs = np.concatenate([[np.nan], *(each.high[same] for each in values)])
            known = ~np.isnan(lows)
            if known.sum() < 2 or lows[known].max() > highs[known].min():
                continue
            time = Interval(lows[known].max(), highs[known].min())
            changed = cells.with_time(column, index, time)
            resolved = _resolved(changed, found, wrong)
            count = sum(int(each.sum()) for each in resolved.values())
            if count >= 2:
                name, rule = _time_slip(cells, own, index, time)
                place, to = np.arange(len(n)) == index, changed.columns[column]
                yield Cause(name, place, column, rule, own, to, total, resolved, count - 0.5)


def _time_slip(cells: Cells, times: Interval, index: int, time: Interval) -> tuple[str, str]:
    for name, factor in (("time_in_ms", 1e-3), ("time_in_minutes", 60.0)):
        if (times * factor).meets(time)[index]:
            return name, ""
    for other in np.flatnonzero(times.meets(time)):
        same = cells.gpus[other] == cells.gpus[index] or cells.batch[other] == cells.batch[index]
        if other != index and same:
            return "time_of_another", f"{cells.gpus[other]} x {cells.batch[other]}"
    return "time_contradicted", ""
