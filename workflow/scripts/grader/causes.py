"""What is wrong with the figures of a study: the causes that explain most of them, one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from grader.cells import FORMULAS, Cells
from grader.definitions import MISTAKES, Verdict
from grader.intervals import Interval, of
from grader.readings import LARGE, SUSPECTS, Readings
from grader.study import PRINTED, TIMES

ROWS = [
    *(("another_row", [quantity]) for quantity in PRINTED),
    ("rows_swapped", [*TIMES, *PRINTED]),
    ("times_swapped", TIMES),
    ("figures_swapped", [*PRINTED]),
]
"""What two cells may have exchanged, the likelier the later."""
FEW = 10
"""A cause may make one other figure wrong for so many that it explains: they were rounded."""
Wrong = dict[str, np.ndarray]
"""Figures of each quantity, as true or false for each cell."""
Found = dict[str, Verdict]


@dataclass(frozen=True)
class Cause:
    """A mistake of mistakes.yaml, and the cells of the figures that it explains.

    `rule` stands for `{rule}` in its words, `quantity` is "" for a cause in the times. `found` and
    `expected` have an interval for each cell, `suspects` counts the figures that were unexplained.
    `times` are columns in which these cells are wrong.
    """

    name: str
    cells: np.ndarray
    quantity: str = ""
    rule: str = ""
    found: Interval | None = None
    expected: Interval | None = None
    resolved: Wrong = field(default_factory=dict)
    weight: float = 0.0
    times: Sequence[str] = ()
    suspects: int = 0


def causes(found: Found) -> tuple[list[Cause], Wrong]:
    """Every cause, the one that explains most figures first, and what none explains."""
    wrong = {name: one.wrong.copy() for name, one in found.items()}
    blank = {name: one.blank.copy() for name, one in found.items()}
    tried = {name: Readings.of(one) for name, one in found.items() if (one.wrong | one.blank).any()}
    named = list[Cause]()
    while any(each.any() for each in [*wrong.values(), *blank.values()]):
        options = [*_of_rows(found, wrong), *_of_times(found, wrong), *_of_columns(found, wrong)]
        for name, readings in tried.items():
            options += _of_readings(readings, wrong[name], blank[name])
        if not options:
            break
        best = max(options, key=lambda cause: cause.weight)
        others = [best.quantity] if best.quantity in found else list(found)
        suspects = sum(int((wrong[name] | blank[name]).sum()) for name in others)
        named.append(replace(best, suspects=suspects))
        for name, resolved in best.resolved.items():
            wrong[name] &= ~resolved
            blank[name] &= ~resolved
    return named, wrong


def _of_readings(tried: Readings, wrong: np.ndarray, blank: np.ndarray) -> Iterator[Cause]:
    """The reading of most of a quantity's wrong figures."""
    if (best := tried.best(wrong, blank)) is None:
        return
    (mistakes, values, place), one = best, tried.one
    name, rule = (";".join(dict.fromkeys(each)) for each in [*zip(*mistakes, strict=True)][:2])
    # What concerns one of several batch sizes may as well be its T(1,b).
    batch, known = one.cells.batch, one.said.known & (one.cells.gpus > 1)
    alone = len(set(batch[place])) == 1 < len(set(batch[known]))
    alone &= not (one.said.meets(values) | ~known).all()
    weight, resolved = float(place.sum()) - 0.75 * alone, {one.quantity: place}
    yield Cause(name, place, one.quantity, rule, one.said, one.values[0], resolved, weight)


def _of_rows(found: Found, wrong: Wrong) -> Iterator[Cause]:
    """Cells whose times, figures or both stand in each other's row: two, or all of one N."""
    cells, suspects = found["speedup"].cells, _suspects(found["speedup"].cells, wrong)
    moves = [
        ([i, j], [j, i])
        for i, j in combinations(suspects, 2)
        if cells.gpus[i] == cells.gpus[j] or cells.batch[i] == cells.batch[j]
    ]
    for group in cells.groups if suspects else []:
        rows = group[np.argsort(cells.batch[group])].tolist()
        if len(rows) > 2:
            turns = [rows[1:] + rows[:1], rows[-1:] + rows[:-1], rows[::-1]]
            moves += [(rows, other) for other in turns]
    for rows, others in moves:
        order = np.arange(len(cells.gpus))
        order[rows] = others
        place = order != np.arange(len(order))
        for rank, (name, columns) in enumerate(ROWS):
            cause = Cause(name, place)
            if len(columns) == 1:
                one = found[columns[0]]
                if not wrong[one.quantity][place].all():
                    continue
                cause = Cause(name, place, one.quantity, "", one.said, one.values[0])
            moved = {column: cells.columns[column].take(order) for column in columns}
            yield from _explains(cause, moved, found, wrong, 0.3 + 0.01 * rank, least=2)


def _explains(
    cause: Cause,
    changed: dict[str, Interval],
    found: Found,
    wrong: Wrong,
    bonus: float,
    least: int = 1,
) -> Iterator[Cause]:
    """Yield `cause` with the wrong figures that are right by changed columns, if they are enough.

    Not where several others become wrong.
    """
    cells, resolved = found["speedup"].cells.with_values(changed), {}
    for name, one in found.items():
        again = replace(one, cells=cells)
        if (again.wrong & ~one.wrong).sum() * FEW > wrong[name].sum():
            return
        resolved[name] = wrong[name] & ~again.wrong
    if (count := sum(int(each.sum()) for each in resolved.values())) >= least:
        times = [column for column in changed if column in TIMES]
        yield replace(cause, resolved=resolved, weight=count + bonus, times=times)


def _suspects(cells: Cells, wrong: Wrong) -> list[int]:
    """The cells with wrong figures and those of their T(1,b); none where it would take long."""
    affected = np.logical_or.reduce(list(wrong.values()))
    single = (cells.gpus == 1) & np.isin(cells.batch, cells.batch[affected])
    found: list[int] = np.flatnonzero(affected | single).tolist()
    return found if len(found) <= SUSPECTS and len(single) <= LARGE else []


def _of_times(found: Found, wrong: Wrong) -> Iterator[Cause]:
    """A time of a cell wrong by a factor on which two figures agree, or both by nearly the same.

    The range of the cell's epochs is as good as a figure.
    """
    cells = found["speedup"].cells
    suspects, n, names = _suspects(cells, wrong), cells.gpus, cells.names
    implied = {letter: _implied(found, letter, wrong) for letter in "TW"}
    for index, letters in product(suspects, ["T", "W", "TW"]):
        place, time = np.arange(len(n)) == index, "T"
        same = place
        if n[index] == 1:
            same, time = (cells.batch == cells.batch[index]) & (n > 1), "T1"
        tolerance = {letters[0]: of(1.0), letters[1:]: names["around"]}
        evidence = [
            (factor * tolerance[letter]).take(np.flatnonzero(same))
            for letter in letters
            for factor in implied[letter][time]
        ]
        if "T" in letters:
            off = place & ~names["range"].meets(names["T"])
            evidence.append((names["range"] / names["T"]).take(np.flatnonzero(off)))
        lows, highs = (
            np.concatenate([[np.nan], *(getattr(one, end) for one in evidence)])
            for end in ("low", "high")
        )
        low, high = np.nanmax(lows, initial=-np.inf), np.nanmin(highs, initial=np.inf)
        if (~np.isnan(lows)).sum() < 2 or low > high or high <= 0:
            continue
        times = {
            column: (names[letter] * Interval(low, high) * tolerance[letter]).where(
                place, names[letter]
            )
            for letter, column in zip("TW", TIMES, strict=False)
            if letter in letters
        }
        column = next(iter(times))
        own, right = cells.columns[column], times[column]
        cause = Cause("time_contradicted", place, column, "", own, right)
        for one in _explains(cause, times, found, wrong, -0.5):
            name, rule = _mistaken_time(cells, own, index, right.take(np.full(len(n), index)))
            yield replace(one, name=name, rule=rule)


def _of_columns(found: Found, wrong: Wrong) -> Iterator[Cause]:
    """The times on one GPU, on several or on all, wrong by one known mistake."""
    cells = found["speedup"].cells
    single = cells.gpus == 1
    every = [
        (name, rule, formula, times)
        for key, times in (("time", TIMES), (TIMES[1], TIMES[1:2]))
        for name, mistake in MISTAKES.items()
        for rule, formula in mistake.formulas.get(key, [])
    ]
    for (name, rule, formula, times), place in product(every, [single, ~single, single | True]):
        right = dict[str, Interval]()
        for time in times if place.sum() > 1 else []:
            own = cells.columns[time]
            right[time] = cells.evaluate(formula, value=own).where(place, own)
        if right:
            cause = Cause(name, place, times[0], rule, cells.columns[times[0]], right[times[0]])
            yield from _explains(cause, right, found, wrong, -0.4, least=2)


def _implied(found: Found, letter: str, wrong: Wrong) -> dict[str, list[Interval]]:
    """By what the wrong figures by times of one kind say that T(1,b) and T(N,b) are to multiply."""
    cells, implied = found["speedup"].cells, {"T1": list[Interval](), "T": list[Interval]()}
    times = {"T": cells.names[letter], "T1": cells.names[f"{letter}1"]}
    for name, formulas in FORMULAS["implied"].items() if times["T"].known.any() else ():
        one = found[name]
        for time, formula in formulas.items() if letter in one.formula else ():
            value = one.said.where(wrong[name], one.said * np.nan)
            implied[time].append(cells.evaluate(formula, value=value, **times) / times[time])
    return implied


def _mistaken_time(cells: Cells, own: Interval, index: int, time: Interval) -> tuple[str, str]:
    """The mistake that made a time of another one, and its rule."""
    for name, mistake in MISTAKES.items():
        for rule, formula in mistake.formulas.get("time", []):
            made = cells.evaluate(formula, value=own)
            if (made.meets(time) & ~made.meets(own))[index]:
                return name, rule
    alike = own.meets(time) | own.meets(own.take(np.full(len(own.low), index)))
    for other in np.flatnonzero(alike):
        same = cells.gpus[other] == cells.gpus[index] or cells.batch[other] == cells.batch[index]
        if other != index and same:
            return "time_of_another", f"{cells.gpus[other]} x {cells.batch[other]}"
    return "time_contradicted", ""
