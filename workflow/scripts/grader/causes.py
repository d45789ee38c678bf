"""What is wrong with the figures of a study: the causes that explain most of them, one by one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from grader.cells import FORMULAS, Cells
from grader.definitions import AROUND, BANDWIDTH, SUSPECTS, Slip, Verdict, slips
from grader.intervals import FUZZ, Interval, of
from grader.study import PRINTED, TIMES

CHANCE = 0.05
"""A cause is named that explains figures which luck would explain more seldom than this."""
SPREAD = 4.0
"""A figure that is wrong for no known reason may be anywhere within a factor of e⁴."""
LARGE = 1000
"""Of a study with more cells none are tried as exchanged, nor a time of one as wrong."""
BOTH = [("epoch_seconds", "T", "W"), ("epoch_seconds_without_loading", "W", "T")]
"""Each time, its name in formulas.yaml, and that of the other one."""
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
        beyond = {
            f"unexplained;{words}": cells.evaluate(formula)
            for words, formula in FORMULAS["impossible"].get(name, {}).items()
        }
        left = {**beyond, "nearly": near, "unexplained": ~near}
        for words, place in left.items():
            rest = wrong[name] & place
            wrong[name] &= ~place
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
    """A time that at least two figures contradict, and agree on what it was.

    As good as a second figure are the range of the cell's epochs, and that its other time is wrong
    by the same factor.
    """
    total = sum(int(each.sum()) for each in wrong.values())
    suspects, n, spread = _suspects(cells, wrong), cells.gpus, cells.names["range"]
    implied = {letter: _implied(cells, found, letter, wrong) for letter in "TW"}
    every = {letter: _implied(cells, found, letter) for letter in "TW"} if suspects else {}
    for index, (column, letter, other) in product(suspects, BOTH):
        own, place, time = cells.names[letter], np.arange(len(n)) == index, "T"
        same = place
        if n[index] == 1:
            same, time = (cells.batch == cells.batch[index]) & (n > 1), "T1"
        evidence = [(each, same) for each in implied[letter][time]]
        beside = _agreed([(each, same) for each in every[other][time]])
        if beside.known.all():
            evidence.append((own * (beside / cells.names[other]) * AROUND, place))
        if letter == "T":
            evidence.append((spread, place & ~spread.meets(own)))
        agreed = _agreed(evidence, least=2)
        if agreed.known.all():
            changed = cells.with_time(column, index, agreed)
            resolved = _resolved(changed, found, wrong)
            if count := sum(int(each.sum()) for each in resolved.values()):
                name, rule = _time_slip(cells, own, index, agreed)
                to = changed.columns[column]
                yield Cause(name, place, column, rule, own, to, total, resolved, count - 0.5)


def _implied(
    cells: Cells, found: dict[str, Verdict], letter: str, wrong: Wrong | None = None
) -> dict[str, list[Interval]]:
    """What the wrong figures by times of one kind say of T(1,b) and T(N,b).

    A bandwidth that goes on from a wrong communication says it again.
    """
    implied = {"T1": list[Interval](), "T": list[Interval]()}
    rates, moved = found[BANDWIDTH], found["communication_seconds"]
    again = cells.evaluate(rates.source, moving=rates.said) * rates.constant
    again = again.where(rates.agrees, again * np.nan)
    for name, formulas in FORMULAS["implied"].items() if cells.names[letter].known.any() else ():
        one = found[name]
        place = one.wrong if wrong is None else wrong[name]
        for said, (time, formula) in product([one.said, again], formulas.items()):
            if letter in one.source and (said is one.said or one is moved):
                value = said.where(place, said * np.nan)
                times = {"T": cells.names[letter], "T1": cells.names[f"{letter}1"]}
                implied[time].append(cells.evaluate(formula, value=value, **times))
    return implied


def _agreed(evidence: list[tuple[Interval, np.ndarray]], least: int = 1) -> Interval:
    """What intervals have in common in these places; unknown where fewer than `least` are known."""
    lows, highs = (
        np.concatenate([[np.nan], *(getattr(each, end)[place] for each, place in evidence)])
        for end in ("low", "high")
    )
    known = ~np.isnan(lows)
    if known.sum() < least or lows[known].max() > highs[known].min():
        return of(np.nan)
    return Interval(lows[known].max(), highs[known].min())


def _time_slip(cells: Cells, times: Interval, index: int, time: Interval) -> tuple[str, str]:
    for name, factors in FORMULAS["time_slips"].items():
        for factor in factors:
            if (times * factor).meets(time)[index]:
                return name, f"{1 / factor:.0f}"
    for other in np.flatnonzero(times.meets(time)):
        same = cells.gpus[other] == cells.gpus[index] or cells.batch[other] == cells.batch[index]
        if other != index and same:
            return "time_of_another", f"{cells.gpus[other]} x {cells.batch[other]}"
    return "time_contradicted", ""
