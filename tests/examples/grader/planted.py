"""Submissions with one mistake each, of all kinds that an audit has to name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from examples.grader.published_study import TRAIN_IMAGES
from examples.grader.ratios import RATIOS, SAME
from examples.grader.submissions import FIGURES, Key, Submission, honest


@dataclass
class Planted:
    """A submission with one error, the cells it is in and the causes that name it."""

    submission: Submission
    cells: set[Key]
    names: set[str]


def planted(number: int, seed: int) -> Planted:
    """The error of a number: each kind in turn, where and how much by the seed."""
    rng = np.random.default_rng([seed, number])
    made = honest(int(rng.integers(2**31)), plain=True)
    several = [key for key in made.rows if key[0] > 1]
    kind, ratio = KINDS[number % len(KINDS)]
    if ratio is not None:
        quantity, name, factor = ratio
        change = {key: abs(factor(*key, made.values[key]) - 1) for key in several}
        bent = [key for key in several if change[key] > 0]
        if kind == "cell":
            bent = [_pick(rng, [key for key in bent if change[key] > 0.005] or bent)]
        for key in bent if kind == "cell" else several:
            value = made.values[key][quantity]
            made.put(key, quantity, value * factor(*key, made.values[key]))
        return Planted(made, set(bent), {name} | SAME.get(name, set()))
    cells, names = OTHER[kind](made, rng, several)
    return Planted(made, set(cells), set(names))


Found = tuple[list[Key], list[str]]
"""The cells that an audit has to find, and the causes that name what is wrong there."""
Plant = Callable[[Submission, Generator, list[Key]], Found]
TIMES = ["epoch_seconds", "epoch_seconds_without_loading", "epoch_seconds_min", "epoch_seconds_max"]


def _pick(rng: Generator, keys: list[Key]) -> Key:
    return keys[rng.integers(len(keys))]


def _pair(rng: Generator, keys: list[Key]) -> tuple[Key, Key]:
    one = _pick(rng, keys)
    return one, _pick(rng, [key for key in keys if key[0] == one[0] and key != one])


def _swap(made: Submission, one: Key, other: Key, columns: list[str]) -> None:
    for column in columns:
        rows = made.rows
        rows[one][column], rows[other][column] = rows[other][column], rows[one][column]


def _scale(made: Submission, keys: list[Key], columns: list[str], factor: float) -> None:
    for key in keys:
        for column in columns:
            if text := made.rows[key][column]:
                made.rows[key][column] = f"{float(text) * factor:.{len(text.partition('.')[2])}f}"


def _rows_swapped(columns: list[str], name: str) -> Plant:
    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        pair = _pair(rng, several)
        _swap(made, *pair, columns)
        return list(pair), [name, "another_row", "other_gpus"]

    return plant


def _columns(one: str, other: str, copied: bool, names: list[str]) -> Plant:
    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        for key in made.rows:
            row = made.rows[key]
            row[one], row[other] = row[other], row[other] if copied else row[one]
        return list(made.rows), names

    return plant


def _scaled(columns: list[str], factor: float, names: list[str], single: bool = True) -> Plant:
    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        key = _pick(rng, [key for key in made.rows if (key[0] == 1) == single])
        _scale(made, [key], columns, factor)
        return [key], names

    return plant


def _edit(column: str, factor: float, names: list[str], count: str = "") -> Plant:
    """Another figure beside the time of a cell, or none where the factor is 0."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        for row in made.rows.values():
            row |= {"count": "3", TIMES[2]: row[TIMES[0]], TIMES[3]: row[TIMES[0]]}
        key = _pick(rng, several)
        made.rows[key][column] = f"{float(made.rows[key][column]) * factor:.3f}" * (factor != 0)
        made.rows[key]["count"] = count or "3"
        return [key], names

    return plant


def _missing(made: Submission, rng: Generator, several: list[Key]) -> Found:
    key = _pick(rng, several)
    del made.rows[key]
    return [key], ["missing_cell"]


def _copied_time(made: Submission, rng: Generator, several: list[Key]) -> Found:
    one, other = _pair(rng, several)
    for column in TIMES:
        made.rows[one][column] = made.rows[other][column]
    return [one, other], ["identical_times", "time_of_another"]


def _first_speedup(made: Submission, rng: Generator, several: list[Key]) -> Found:
    key = _pick(rng, [key for key in made.rows if key[0] == 1])
    made.rows[key]["printed_speedup"] = "1.25"
    return [key], []


def _all_in_ms(made: Submission, rng: Generator, several: list[Key]) -> Found:
    columns = [*TIMES, "printed_compute_seconds", "printed_communication_seconds"]
    _scale(made, list(made.rows), columns, 1000)
    return list(made.rows), ["in_milliseconds"]


def _of_one(pick: Callable[[Submission, int, int], Key]) -> Plant:
    """Speedups against the time of another cell of one GPU, where there is one."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        there = [key for key in several if pick(made, *key) in made.rows]
        for key in there:
            single = made.values[pick(made, *key)]["seconds"]
            made.put(key, "speedup", single / made.values[key]["seconds"])
        return several, ["fixed_global_batch", "one_baseline"]

    return plant


def _quickest(made: Submission, n: int, b: int) -> Key:
    return min(
        (key for key in made.rows if key[0] == 1), key=lambda key: made.values[key]["seconds"]
    )


def _of_epochs(made: Submission, rng: Generator, several: list[Key]) -> Found:
    _scale(made, list(made.rows), TIMES, 5)
    return list(made.rows), ["epochs"]


def _throughput(made: Submission, rng: Generator, several: list[Key]) -> Found:
    for row in made.rows.values():
        row |= {name: f"{TRAIN_IMAGES / float(row[name]):.2f}" for name in TIMES[:2]}
        row |= dict.fromkeys(["count", *TIMES[2:]], "")
    return list(made.rows), ["throughput_as_time"]


def _ranks_twice(made: Submission, rng: Generator, several: list[Key]) -> Found:
    for key in several:
        _scale(made, [key], TIMES, 1 / key[0])
        made.rows[key] |= dict.fromkeys(FIGURES.values(), "")
    return several, ["ranks_twice", "faster_than_gpus"]


def _never_divided(made: Submission, rng: Generator, several: list[Key]) -> Found:
    for key in several:
        made.put(key, "compute", made.values[key]["compute"] * key[0] * (0.85 + 0.003 * key[0]))
    return several, ["same_for_all"]


_ALL = list(FIGURES.values())
OTHER: dict[str, Plant] = {
    "figures of two rows": _rows_swapped(_ALL, "figures_swapped"),
    "times of two rows": _rows_swapped(TIMES, "times_swapped"),
    "two rows": _rows_swapped([*TIMES, *_ALL], "rows_swapped"),
    "two speedups": _rows_swapped(_ALL[:1], "another_row"),
    "two bandwidths": _rows_swapped(_ALL[3:4], "another_row"),
    "compute and communication": _columns(_ALL[1], _ALL[2], False, ["wrong_column", "copied"]),
    "times of both columns": _columns(TIMES[0], TIMES[1], False, ["times_exchanged"]),
    "speedup copied": _columns(_ALL[0], _ALL[1], True, ["copied", "wrong_column"]),
    "bandwidth copied": _columns(_ALL[3], _ALL[4], True, ["copied"]),
    "time of one GPU in ms": _scaled(TIMES, 1000, ["time_in_ms"]),
    "time of one GPU": _scaled(TIMES[:2], 1.21, ["time_contradicted", "time_of_another"]),
    "time of several GPUs in ms": _scaled(TIMES, 1000, ["time_in_ms", "thousand_times"], False),
    "time of several GPUs": _scaled(TIMES[:2], 1.21, [], False),
    "speedup typed wrong": _scaled(_ALL[:1], 1.37, [], False),
    "compute typed wrong": _scaled(_ALL[1:2], 0.83, [], False),
    "communication typed wrong": _scaled(_ALL[2:3], 1.37, [], False),
    "bandwidth typed wrong": _scaled(_ALL[3:4], 1.37, [], False),
    "bandwidth above any link": _scaled(_ALL[3:4], 1e5, [], False),
    "utilization typed wrong": _scaled(_ALL[4:], 1.37, [], False),
    "minimum above": _edit(TIMES[2], 1.1, ["range"]),
    "maximum below": _edit(TIMES[3], 0.9, ["range"]),
    "one with a range": _edit(TIMES[2], 0.9, ["range_of_one"], count="1"),
    "blank figure": _edit(_ALL[2], 0, ["blank_figure"]),
    "missing cell": _missing,
    "time copied": _copied_time,
    "speedup of one GPU": _first_speedup,
    "all in ms": _all_in_ms,
    "baseline of N times the batch": _of_one(lambda made, n, b: (1, n * b)),
    "baseline of the largest batch": _of_one(
        lambda made, n, b: max(k for k in made.rows if k[0] == 1)
    ),
    "the quickest baseline": _of_one(_quickest),
    "times of five epochs": _of_epochs,
    "throughput for time": _throughput,
    "throughput of ranks twice": _ranks_twice,
    "compute that nobody divided": _never_divided,
    "both times of several GPUs": _scaled(
        TIMES, 1.4, ["time_contradicted", "time_of_another"], False
    ),
    "time of one GPU in minutes": _scaled(TIMES, 1 / 60, ["time_in_minutes"]),
    "time of five epochs": _scaled(TIMES, 5, ["time_of_epochs"]),
}
"""Kinds that are no factor of a figure; a kind without names cannot be named."""
KINDS = [(kind, ratio) for kind in ("column", "cell") for ratio in RATIOS]
KINDS += [(kind, None) for kind in OTHER]
"""A column or a cell that is off by a ratio, or a kind of its own."""
