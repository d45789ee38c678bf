"""Submissions with one mistake each, of all kinds that an audit has to name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from examples.grader.published_study import TRAIN_IMAGES
from examples.grader.ratios import RATIOS, Factor
from examples.grader.submissions import FIGURES, Key, Submission, honest
from grader.study import TIMES


@dataclass
class Planted:
    """A submission with one error, the cells it is in and the causes that name it."""

    submission: Submission
    cells: set[Key]
    names: set[str]


Found = tuple[list[Key], list[str]]
"""The cells that an audit has to find, and the causes that name what is wrong there."""
Plant = Callable[[Submission, Generator, list[Key]], Found]


def planted(number: int, seed: int) -> Planted:
    """The error of a number: each kind in turn, where and how much by the seed."""
    rng = np.random.default_rng([seed, number])
    made = honest(int(rng.integers(2**31)), plain=True)
    plant = KINDS[number % len(KINDS)]
    cells, names = plant(made, rng, [key for key in made.rows if key[0] > 1])
    return Planted(made, set(cells), set(names))


SAME = {
    "numbers": {"over_gpus"},
    "eight_bytes": {"times_gpus"},
    "ring_factor_twice": {"broadcast_for_ring"},
    "no_ring_factor": {"ring_for_dp", "one_way"},
    "batch_as_bandwidth": {"copied"},
    "wrong_column": {"copied"},
    "total_as_compute": {"copied", "mixed_times"},
    "not_divided": {"copied", "times_gpus"},
    "divided_twice": {"over_gpus"},
    "other_gpus": {"divided_twice", "not_divided", "same_for_all"},
    "other_share": {"not_divided"},
    "gpus_times": {"eight_bytes", "broadcast_for_ring", "ring_factor_twice", "to_each_peer"},
    "to_each_peer": {"ring_factor_twice"},
    "undivided_iterations": {"gpus_times", "eight_bytes"},
    "over_epoch": {"over_total"},
    "fraction": {"hundredth", "all_below_one", "above_any_link"},
}
"""Other names for the same: one factor of 4 is as good as another on 4 GPUs."""


def _pick(rng: Generator, keys: list[Key]) -> Key:
    return keys[rng.integers(len(keys))]


def _pair(rng: Generator, keys: list[Key]) -> tuple[Key, Key]:
    one = _pick(rng, keys)
    return one, _pick(rng, [key for key in keys if key[0] == one[0] and key != one])


def _ratio(quantity: str, name: str, factor: Factor) -> Plant:
    """Figures of a column times a factor, or one of them, by chance."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        change = {key: abs(factor(*key, made.values[key]) - 1) for key in several}
        bent = [key for key in several if change[key] > 0]
        if rng.random() < 0.5:
            bent = [_pick(rng, [key for key in bent if change[key] > 0.005] or bent)]
        for key in bent:
            made.put(key, quantity, made.values[key][quantity] * factor(*key, made.values[key]))
        return bent, [name, *SAME.get(name, ())]

    return plant


def _each(
    edit: Callable[[Submission, Key], None], names: list[str], rows: str = "several"
) -> Plant:
    """Rows that are edited: those on several GPUs, all, one of several, or one of a single GPU."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        keys = {"several": several, "one": several, "all": list(made.rows)}.get(rows)
        keys = keys or [key for key in made.rows if key[0] == 1]
        keys = [_pick(rng, keys)] if rows in ("one", "single") else keys
        for key in keys:
            edit(made, key)
        return keys, names

    return plant


def _by(columns: list[str], factor: Callable[[int], float]) -> Callable[[Submission, Key], None]:
    """Columns of a row times a factor of its number of GPUs, with as many digits."""

    def edit(made: Submission, key: Key) -> None:
        for column in columns:
            if text := made.rows[key][column]:
                digits = len(text.partition(".")[2])
                made.rows[key][column] = f"{float(text) * factor(key[0]):.{digits}f}"

    return edit


def _scaled(columns: list[str], factor: float, names: list[str], rows: str = "single") -> Plant:
    return _each(_by(columns, lambda n: factor), names, rows)


def _columns(one: str, other: str, copied: bool, names: list[str]) -> Plant:
    def edit(made: Submission, key: Key) -> None:
        row = made.rows[key]
        row[one], row[other] = row[other], row[other] if copied else row[one]

    return _each(edit, names, "all")


def _rows_swapped(columns: list[str], name: str) -> Plant:
    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        one, other = _pair(rng, several)
        first, second = made.rows[one], made.rows[other]
        for column in columns:
            first[column], second[column] = second[column], first[column]
        return [one, other], [name, "another_row", "other_gpus"]

    return plant


def _edit(column: str, factor: float, names: list[str], count: str = "3") -> Plant:
    """Another figure beside the time of a cell, or none where the factor is 0."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        for row in made.rows.values():
            row |= {"count": "3", TIMES[2]: row[TIMES[0]], TIMES[3]: row[TIMES[0]]}
        row = made.rows[key := _pick(rng, several)]
        row |= {column: f"{float(row[column]) * factor:.3f}" * (factor != 0), "count": count}
        return [key], names

    return plant


def _missing(made: Submission, rng: Generator, several: list[Key]) -> Found:
    key = _pick(rng, several)
    del made.rows[key]
    return [key], ["missing_cell"]


def _copied_time(made: Submission, rng: Generator, several: list[Key]) -> Found:
    one, other = _pair(rng, several)
    made.rows[one] |= {column: made.rows[other][column] for column in TIMES}
    return [one, other], ["time_of_another"]


def _of_one(pick: Callable[[Submission, int, int], Key]) -> Plant:
    """Speedups against the time of another cell of one GPU, where there is one."""

    def edit(made: Submission, key: Key) -> None:
        if (other := pick(made, *key)) in made.rows:
            single = made.values[other]["seconds"]
            made.put(key, "speedup", single / made.values[key]["seconds"])

    return _each(edit, ["fixed_global_batch", "one_baseline"])


def _throughput(made: Submission, key: Key) -> None:
    rates = {name: f"{TRAIN_IMAGES / float(made.rows[key][name]):.2f}" for name in TIMES[:2]}
    made.rows[key] |= rates | dict.fromkeys(["count", *TIMES[2:]], "")


def _ranks_twice(made: Submission, key: Key) -> None:
    _by(TIMES, lambda n: 1 / n)(made, key)
    made.rows[key] |= dict.fromkeys(FIGURES.values(), "")


def _never_divided(made: Submission, key: Key) -> None:
    once = made.values[key]["compute"] * key[0]
    made.put(key, "compute", once * (0.85 + 0.003 * key[0]))


def _shifted(made: Submission, rng: Generator, several: list[Key]) -> Found:
    """The times of one number of GPUs, each in the row below its own."""
    keys = [key for key in several if key[0] == several[0][0]]
    times = [{name: made.rows[key][name] for name in TIMES} for key in keys]
    for key, moved in zip(keys, [times[-1], *times], strict=False):
        made.rows[key] |= moved
    return keys, ["times_swapped"]


def _of_first_batch(made: Submission, rng: Generator, several: list[Key]) -> Found:
    first = min(b for _, b in several)
    for n, b in several:
        made.put((n, b), "speedup", made.values[n, first]["speedup"])
    return [key for key in several if key[1] != first], ["other_batch"]


_ALL = list(FIGURES.values())
OTHER: list[Plant] = [
    _rows_swapped(_ALL, "figures_swapped"),
    _rows_swapped(TIMES, "times_swapped"),
    _rows_swapped([*TIMES, *_ALL], "rows_swapped"),
    _rows_swapped(_ALL[:1], "another_row"),
    _rows_swapped(_ALL[3:4], "another_row"),
    _columns(_ALL[1], _ALL[2], False, ["wrong_column", "copied"]),
    _columns(TIMES[0], TIMES[1], False, ["times_exchanged"]),
    _columns(_ALL[0], _ALL[1], True, ["copied", "wrong_column"]),
    _columns(_ALL[3], _ALL[4], True, ["copied"]),
    _scaled(TIMES, 1000, ["time_in_ms"]),
    _scaled(TIMES[:2], 1.21, ["time_contradicted", "time_of_another"]),
    _scaled(TIMES, 1000, ["time_in_ms", "thousand_times"], "one"),
    _scaled(TIMES[:2], 1.21, [], "one"),
    _scaled(_ALL[:1], 1.37, [], "one"),
    _scaled(_ALL[1:2], 0.83, [], "one"),
    _scaled(_ALL[2:3], 1.37, [], "one"),
    _scaled(_ALL[3:4], 1.37, [], "one"),
    _scaled(_ALL[3:4], 1e5, [], "one"),
    _scaled(_ALL[4:], 1.37, [], "one"),
    _edit(TIMES[2], 1.1, ["range"]),
    _edit(TIMES[3], 0.9, ["range"]),
    _edit(TIMES[2], 0.9, ["range_of_one"], count="1"),
    _edit(_ALL[2], 0, ["blank_figure"]),
    _missing,
    _copied_time,
    _each(lambda made, key: made.rows[key].update(printed_speedup="1.25"), [], "single"),
    _scaled([*TIMES, *_ALL[1:3]], 1000, ["in_milliseconds"], "all"),
    _of_one(lambda made, n, b: (1, n * b)),
    _of_one(lambda made, n, b: max(k for k in made.rows if k[0] == 1)),
    _of_one(
        lambda made, n, b: min((v["seconds"], k) for k, v in made.values.items() if k[0] == 1)[1]
    ),
    _scaled(TIMES, 5, ["epochs"], "all"),
    _each(_throughput, ["throughput_as_time"], "all"),
    _each(_ranks_twice, ["ranks_twice", "faster_than_gpus"]),
    _each(_never_divided, ["same_for_all"]),
    _scaled(TIMES, 1.4, ["time_contradicted", "time_of_another"], "one"),
    _scaled(TIMES, 1 / 60, ["time_in_minutes"]),
    _scaled(TIMES, 5, ["time_of_epochs"]),
    _each(_by(TIMES, lambda n: n), ["time_of_all"]),
    _shifted,
    _of_first_batch,
]
KINDS = [*(_ratio(*ratio) for ratio in RATIOS), *OTHER]
"""A column or a cell that is off by a ratio, or a kind of its own; some have no name."""
