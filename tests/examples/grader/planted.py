"""Submissions with one mistake each, of all kinds that an audit has to name."""

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from examples.grader.published_study import TRAIN_IMAGES
from examples.grader.submissions import FIGURES, Key, Submission, honest
from grader.study import TIMES

TIME, WITHOUT = TIMES[:2]
ALL = SPEEDUP, COMPUTE, REST, BANDWIDTH, SHARE = list(FIGURES.values())
Row = dict[str, str]
Factor = Callable[[int, int, dict[str, float]], float]
"""From the number of GPUs, the batch size and the values of a cell."""
Found = tuple[list[Key], list[str]]
Plant = Callable[[Submission, Generator, list[Key]], Found]
"""Returns the cells that an audit has to find, and the causes that name what is wrong there."""


def planted(number: int, seed: int) -> tuple[Submission, set[Key], set[str]]:
    """A submission with the error of a number, the cells it is in and the causes that name it.

    Each kind comes in turn, where and how much by the seed.
    """
    rng = np.random.default_rng([seed, number])
    made = honest(int(rng.integers(2**31)), plain=True)
    plant = KINDS[number % len(KINDS)]
    cells, names = plant(made, rng, [key for key in made.rows if key[0] > 1])
    return made, set(cells), set(names)


SAME = {
    **{"numbers": {"over_gpus"}, "eight_bytes": {"times_gpus"}},
    "ring_factor_twice": {"broadcast_for_ring"},
    "no_ring_factor": {"ring_for_dp", "one_way"},
    **{"batch_as_bandwidth": {"copied"}, "wrong_column": {"copied"}},
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


def _each(edit: Callable[[Submission, Key], object], names: list[str], rows: str = "all") -> Plant:
    """Rows that are edited: all, those on several GPUs, one of these, or one of a single GPU."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        keys = several if rows in ("several", "one") else list(made.rows)
        keys = [key for key in keys if key[0] == 1] if rows == "single" else keys
        keys = [_pick(rng, keys)] if rows in ("one", "single") else keys
        for key in keys:
            edit(made, key)
        return keys, names

    return plant


def _changed(change: Callable[[Row], Row], names: list[str], rows: str = "all") -> Plant:
    """Rows with other fields, that follow from their own."""
    return _each(lambda made, key: made.rows[key].update(change(made.rows[key])), names, rows)


def _by(row: Row, columns: list[str], factor: float) -> Row:
    """Columns of a row times a factor, with as many digits."""
    texts = {column: row[column] for column in columns if row[column]}
    digits = {column: len(text.partition(".")[2]) for column, text in texts.items()}
    return {name: f"{float(text) * factor:.{digits[name]}f}" for name, text in texts.items()}


def _scaled(columns: list[str], factor: float, names: list[str], rows: str = "single") -> Plant:
    return _changed(lambda row: _by(row, columns, factor), names, rows)


def _ranged(low: float, high: float, names: list[str], count: str = "3") -> Plant:
    """A time whose range is from `low` to `high` times it."""

    def change(row: Row) -> Row:
        ends = {TIMES[2]: float(row[TIME]) * low, TIMES[3]: float(row[TIME]) * high}
        return {"count": count, **{name: f"{end:.3f}" for name, end in ends.items()}}

    return _changed(change, names, "one")


def _moved(columns: list[str], names: list[str], many: bool = False, copied: bool = False) -> Plant:
    """Columns of two rows of as many GPUs are exchanged, or those of `many` stand one row lower.

    If `copied`, the one has those of the other.
    """

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        one = _pick(rng, several)
        others = [key for key in several if key[0] == one[0] and key != one]
        keys = sorted([one, *others]) if many else [one, _pick(rng, others)]
        fields = [{name: made.rows[key][name] for name in columns} for key in keys]
        for key, moved in zip(keys, fields[1:] + fields[copied:1], strict=False):
            made.rows[key] |= moved
        return keys, names

    return plant


def _of_one(pick: Callable[[Submission, int, int], Key]) -> Plant:
    """Speedups against the time of another cell of one GPU, where there is one."""

    def edit(made: Submission, key: Key) -> None:
        if single := made.values.get(pick(made, *key)):
            made.put(key, "speedup", single["seconds"] / made.values[key]["seconds"])

    return _each(edit, ["fixed_global_batch", "one_baseline"], "several")


def _fastest(made: Submission, n: int, b: int) -> Key:
    singles = [key for key in made.values if key[0] == 1]
    return min(singles, key=lambda one: made.values[one]["seconds"])


def _never_divided(made: Submission, key: Key) -> None:
    factor = key[0] * (0.85 + 0.003 * key[0])
    made.put(key, "compute", made.values[key]["compute"] * factor)


def _of_first_batch(made: Submission, key: Key) -> None:
    made.put(key, "speedup", made.values[key[0], min(made.rows)[1]]["speedup"])


def _steps(n: int, b: int, images: float = TRAIN_IMAGES) -> int:
    return math.ceil(images / (n * b))


def _rest(v: dict[str, float], m: int) -> float:
    return (v["own"] - v["own single"] / m) / v["communication"]


RATIOS: list[tuple[str, str, Factor]] = [
    ("speedup", "times_gpus", lambda n, b, v: n),
    ("speedup", "efficiency", lambda n, b, v: 1 / n),
    ("speedup", "inverted", lambda n, b, v: 1 / v["speedup"] ** 2),
    ("speedup", "ideal", lambda n, b, v: n / v["speedup"]),
    ("speedup", "hundred_times", lambda n, b, v: 100),
    ("compute", "not_divided", lambda n, b, v: n),
    ("compute", "divided_twice", lambda n, b, v: 1 / n),
    ("compute", "thousand_times", lambda n, b, v: 1000),
    ("compute", "total_as_compute", lambda n, b, v: v["seconds"] / v["compute"]),
    ("communication", "thousand_times", lambda n, b, v: 1000),
    ("communication", "per_step", lambda n, b, v: 1 / _steps(n, b)),
    ("communication", "wrong_column", lambda n, b, v: v["compute"] / v["communication"]),
    ("communication", "sign", lambda n, b, v: -1),
    ("compute", "divided_epoch", lambda n, b, v: v["own"] / n / v["compute"]),
    ("compute", "rate", lambda n, b, v: TRAIN_IMAGES / v["compute"] ** 2),
    ("bandwidth", "to_each_peer", lambda n, b, v: (n - 1) / v["sent"]),
    ("bandwidth", "one_iteration", lambda n, b, v: 1 / _steps(n, b)),
    ("bandwidth", "gib", lambda n, b, v: 1e9 / 2**30),
    ("bandwidth", "mib", lambda n, b, v: 1e9 / 2**20),
    ("bandwidth", "thousand_times", lambda n, b, v: 1000),
    ("bandwidth", "bits", lambda n, b, v: 8),
    ("bandwidth", "eighth", lambda n, b, v: 1 / 8),
    ("bandwidth", "eight_bytes", lambda n, b, v: 2),
    ("bandwidth", "numbers", lambda n, b, v: 1 / 4),
    ("bandwidth", "ring_factor_twice", lambda n, b, v: 2 * (n - 1) / n),
    ("bandwidth", "no_ring_factor", lambda n, b, v: n / (n - 1) / 2),
    ("bandwidth", "floor", lambda n, b, v: (TRAIN_IMAGES // (n * b)) / _steps(n, b)),
    ("bandwidth", "other_images", lambda n, b, v: _steps(n, b, 60_000) / _steps(n, b)),
    ("bandwidth", "other_images", lambda n, b, v: _steps(n, b, 45_000) / _steps(n, b)),
    ("bandwidth", "over_epoch", lambda n, b, v: v["communication"] / v["seconds"]),
    ("bandwidth", "over_total", lambda n, b, v: v["communication"] / v["compute"]),
    ("bandwidth", "batch_as_bandwidth", lambda n, b, v: b / v["bandwidth"]),
    ("utilization", "fraction", lambda n, b, v: 1 / 100),
    ("speedup", "gained", lambda n, b, v: 100 - 100 / v["speedup"]),
    ("speedup", "gained", lambda n, b, v: 1 - 1 / v["speedup"]),
    ("speedup", "saved", lambda n, b, v: (1 - 1 / v["speedup"]) / v["speedup"]),
    ("speedup", "saved", lambda n, b, v: (100 - 100 / v["speedup"]) / v["speedup"]),
    ("speedup", "efficiency", lambda n, b, v: 100 / n),
    ("compute", "minutes", lambda n, b, v: 1 / 60),
    ("compute", "epochs", lambda n, b, v: 5),
    ("compute", "share", lambda n, b, v: 100 / v["own"]),
    ("compute", "other_gpus", lambda n, b, v: n / 2),
    ("communication", "minutes", lambda n, b, v: 1 / 60),
    ("communication", "epochs", lambda n, b, v: 5),
    ("communication", "share", lambda n, b, v: 100 / v["seconds"]),
    ("communication", "share", lambda n, b, v: 1 / v["own"]),
    ("communication", "not_divided", lambda n, b, v: _rest(v, 1)),
    ("communication", "other_share", lambda n, b, v: _rest(v, 2)),
    (
        "bandwidth",
        "over_loading",
        lambda n, b, v: v["communication"] / v["waited"],
    ),
    ("bandwidth", "over_undivided", lambda n, b, v: 1 / _rest(v, 1)),
    ("bandwidth", "over_epoch", lambda n, b, v: v["communication"] / v["without"]),
    ("bandwidth", "undivided_iterations", lambda n, b, v: _steps(1, b) / _steps(n, b)),
    ("bandwidth", "gpus_times", lambda n, b, v: n),
    ("bandwidth", "epochs", lambda n, b, v: 1 / 5),
    ("utilization", "above_all", lambda n, b, v: 130 / v["utilization"]),
    ("bandwidth", "constant_factor", lambda n, b, v: 1.37),
    ("bandwidth", "thousand_times", lambda n, b, v: 1e6),
    ("communication", "thousand_times", lambda n, b, v: 1000 / _steps(n, b)),
    ("speedup", "rate", lambda n, b, v: TRAIN_IMAGES / v["seconds"] / v["speedup"]),
]
"""The quantity, the cause, the factor of a cell."""

ROW = ["another_row", "other_gpus"]
OTHER: list[Plant] = [
    _moved(ALL, ["figures_swapped", *ROW]),
    _moved(TIMES, ["times_swapped", *ROW]),
    _moved([*TIMES, *ALL], ["rows_swapped", *ROW]),
    _moved([SPEEDUP], ROW),
    _moved([BANDWIDTH], ROW),
    _changed(lambda row: {COMPUTE: row[REST], REST: row[COMPUTE]}, ["wrong_column", "copied"]),
    _changed(lambda row: {TIME: row[WITHOUT], WITHOUT: row[TIME]}, ["times_exchanged"]),
    _changed(lambda row: {SPEEDUP: row[COMPUTE]}, ["copied", "wrong_column"]),
    _changed(lambda row: {BANDWIDTH: row[SHARE]}, ["copied"]),
    _scaled(TIMES, 1000, ["time_in_ms"]),
    _scaled(TIMES[:2], 1.21, ["time_contradicted", "time_of_another"]),
    _scaled(TIMES, 1000, ["time_in_ms", "thousand_times"], "one"),
    _scaled(TIMES[:2], 1.21, [], "one"),
    _scaled([SPEEDUP], 1.37, [], "one"),
    _scaled([COMPUTE], 0.83, [], "one"),
    _scaled([REST], 1.37, [], "one"),
    _scaled([BANDWIDTH], 1.37, [], "one"),
    _scaled([BANDWIDTH], 1e5, [], "one"),
    _scaled([SHARE], 1.37, [], "one"),
    _ranged(1.1, 1, ["range"]),
    _ranged(1, 0.9, ["range"]),
    _ranged(0.9, 1, ["range_of_one"], count="1"),
    _changed(lambda row: {REST: ""}, ["blank_figure"], "one"),
    _each(lambda made, key: made.rows.pop(key), ["missing_cell"], "one"),
    _moved(TIMES, ["time_of_another"], copied=True),
    _changed(lambda row: {SPEEDUP: "1.25"}, [], "single"),
    _scaled([*TIMES, COMPUTE, REST], 1000, ["in_milliseconds"], "all"),
    _of_one(lambda made, n, b: (1, n * b)),
    _of_one(lambda made, n, b: max(key for key in made.rows if key[0] == 1)),
    _of_one(_fastest),
    _scaled(TIMES, 5, ["epochs"], "all"),
    _changed(
        lambda row: (
            {name: f"{TRAIN_IMAGES / float(row[name]):.2f}" for name in TIMES[:2]}
            | dict.fromkeys(["count", *TIMES[2:]], "")
        ),
        ["throughput_as_time"],
    ),
    _changed(
        lambda row: _by(row, TIMES, 1 / int(row["gpus"])) | dict.fromkeys(ALL, ""),
        ["ranks_twice", "faster_than_gpus"],
        "several",
    ),
    _each(_never_divided, ["same_for_all"], "several"),
    _scaled(TIMES, 1.4, ["time_contradicted", "time_of_another"], "one"),
    _scaled(TIMES, 1 / 60, ["time_in_minutes"]),
    _scaled(TIMES, 5, ["time_of_epochs"]),
    _changed(lambda row: _by(row, TIMES, int(row["gpus"])), ["time_of_all"], "several"),
    _moved(TIMES, ["times_swapped"], many=True),
    _each(_of_first_batch, ["other_batch"], "several"),
]
KINDS = [*(_ratio(*ratio) for ratio in RATIOS), *OTHER]
"""A column or a cell that is off by a ratio, or a kind of its own; some have no name."""
