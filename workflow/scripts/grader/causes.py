"""What is wrong with the figures of a study: the causes that explain most of them, one by one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from grader.cells import FORMULAS, UNKNOWN, Cells, Interval, of, stacked
from grader.definitions import WAYS, Verdict
from grader.readings import LARGE, SUSPECTS, Cause, Readings, Wrong
from grader.study import PRINTED, TIMES

ROWS = [("another_row", [quantity]) for quantity in PRINTED]
ROWS += [("rows_swapped", [*TIMES, *PRINTED])]
ROWS += [("times_swapped", TIMES), ("figures_swapped", [*PRINTED])]
"""What two cells may have exchanged, the likelier the later."""
COLUMNS = {"T": TIMES[0], "W": TIMES[1]}
FEW = 10
"""A cause may make one other figure wrong for so many that it explains: they were rounded."""
Found = dict[str, Verdict]
Columns = dict[str, Interval]
Changes = Iterator[tuple[Cause, Columns]]


def causes(found: Found) -> tuple[list[Cause], Wrong]:
    """Every cause, the one that explains most figures first, and what none explains."""
    wrong = {name: one.wrong.copy() for name, one in found.items()}
    blank = {name: one.blank.copy() for name, one in found.items()}
    tried = {name: Readings(one) for name, one in found.items() if (one.wrong | one.blank).any()}
    named = list[Cause]()
    while any(each.any() for each in [*wrong.values(), *blank.values()]):
        options = list[Cause]()
        for cause, changed in _changes(found, wrong):
            options += _explains(cause, changed, found, wrong)
        for name, readings in tried.items():
            options += readings.best(wrong[name], blank[name])
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


def _explains(cause: Cause, changed: Columns, found: Found, wrong: Wrong) -> Iterator[Cause]:
    """Yield `cause` with the wrong figures that changed columns make right, if these are enough."""
    cells, resolved = found["speedup"].cells.with_values(changed), {}
    for name, one in found.items():
        again = replace(one, cells=cells)
        if (again.wrong & ~one.wrong).sum() * FEW > wrong[name].sum():
            return
        resolved[name] = wrong[name] & ~again.wrong
    count = sum(int(each.sum()) for each in resolved.values())
    if count >= min(2, cause.cells.sum()):
        times = [column for column in changed if column in TIMES]
        yield replace(cause, resolved=resolved, weight=count + cause.weight, times=times)


def _changes(found: Found, wrong: Wrong) -> Changes:
    """Yield each cause in times or rows, how much likelier it is, and the columns without it."""
    cells = found["speedup"].cells
    single = cells.gpus == 1
    affected = np.logical_or.reduce(list(wrong.values()))
    affected = affected | (single & np.isin(cells.batch, cells.batch[affected]))
    suspects = np.flatnonzero(affected).tolist()
    # The cells with wrong figures and those of their T(1,b), unless it would take long.
    if 0 < len(suspects) <= SUSPECTS and len(single) <= LARGE:
        yield from _of_rows(found, wrong, suspects)
        yield from _of_times(found, wrong, suspects)
    for key, times in (("time", TIMES), (TIMES[1], TIMES[1:2])):
        # The times on one GPU, on several or on all.
        for way, place in product(WAYS[key], [single, ~single, single | True]):
            own = [cells.columns[time] for time in times]
            right = [cells.evaluate(way.formula, value=one).where(place, one) for one in own]
            cause = Cause(way.name, place, times[0], way.rule, own[0], right[0], weight=-0.4)
            if place.sum() > 1:
                yield cause, dict(zip(times, right, strict=True))


def _of_rows(found: Found, wrong: Wrong, suspects: list[int]) -> Changes:
    """Cells whose times, figures or both stand in each other's row: two, or all of one N."""
    cells = found["speedup"].cells
    moves = [
        ([i, j], [j, i])
        for i, j in combinations(suspects, 2)
        if cells.gpus[i] == cells.gpus[j] or cells.batch[i] == cells.batch[j]
    ]
    for group in pd.Series(cells.gpus).groupby(cells.gpus).indices.values():
        rows = sorted(np.asarray(group).tolist(), key=cells.batch.__getitem__)
        if len(rows) > 2:
            moves += [(rows, rows[1:] + rows[:1]), (rows, rows[-1:] + rows[:-1])]
    for rows, others in moves:
        order = np.arange(len(cells.gpus))
        order[rows] = others
        place = order != np.arange(len(order))
        for rank, (name, columns) in enumerate(ROWS):
            one = found[columns[0]] if len(columns) == 1 else None
            if one is None or wrong[one.quantity][place].all():
                cause = Cause(name, place, weight=0.3 + 0.01 * rank)
                if one:
                    right = one.values[0]
                    cause = replace(cause, quantity=one.quantity, found=one.said, expected=right)
                yield cause, {column: cells.columns[column].take(order) for column in columns}


def _of_times(found: Found, wrong: Wrong, suspects: list[int]) -> Changes:
    """A time of a cell wrong by a factor on which two figures agree, or both by nearly the same."""
    cells = found["speedup"].cells
    n, names = cells.gpus, cells.names
    implied = {letter: _implied(found, letter, wrong) for letter in "TW"}
    for index, letters in product(suspects, ["T", "W", "TW"]):
        place, time = np.arange(len(n)) == index, "T"
        same = place
        if n[index] == 1:
            same, time = (cells.batch == cells.batch[index]) & (n > 1), "T1"
        tolerance = {letters[0]: of(1.0), letters[1:]: names["around"]}
        # The range of the cell's epochs is as good as a figure.
        off = place & ("T" in letters) & ~names["range"].meets(names["T"])
        evidence = [(names["range"] / names["T"]).where(off, UNKNOWN)]
        for letter in letters:
            factors = (factor * tolerance[letter] for factor in implied[letter][time])
            evidence += [factor.where(same, UNKNOWN) for factor in factors]
        every = stacked(evidence)
        low, high = np.nanmax(every.low, initial=-np.inf), np.nanmin(every.high, initial=np.inf)
        if every.known.sum() < 2 or low > high or high <= 0:
            continue
        times = Columns()
        for letter in letters:
            right = names[letter] * Interval(low, high) * tolerance[letter]
            times[COLUMNS[letter]] = right.where(place, names[letter])
        column, right = next(iter(times.items()))
        own = cells.columns[column]
        name, rule = _mistaken_time(cells, own, index, right.take(np.full(len(n), index)))
        yield Cause(name, place, column, rule, own, right, weight=-0.5), times


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
    for way in WAYS["time"]:
        made = cells.evaluate(way.formula, value=own)
        if (made.meets(time) & ~made.meets(own))[index]:
            return way.name, way.rule
    alike = own.meets(time) | own.meets(own.take(np.full(len(own.low), index)))
    alike &= (cells.gpus == cells.gpus[index]) | (cells.batch == cells.batch[index])
    for other in set(np.flatnonzero(alike).tolist()) - {index}:
        return "time_of_another", f"{cells.gpus[other]} x {cells.batch[other]}"
    return "time_contradicted", ""
