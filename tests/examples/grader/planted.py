"""Submissions with one mistake each, of all kinds that an audit has to name."""

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from examples.grader.published_study import TRAIN_IMAGES
from examples.grader.submissions import FIGURES, Key, Submission, honest
from grader.study import TIMES

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


def _each(
    edit: Callable[[Submission, Key], object], names: list[str], rows: str = "several"
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


def _two_rows(columns: list[str], names: list[str], copied: bool = False) -> Plant:
    """Columns of two rows of as many GPUs are exchanged, or the one has those of the other."""

    def plant(made: Submission, rng: Generator, several: list[Key]) -> Found:
        one = _pick(rng, several)
        other = _pick(rng, [key for key in several if key[0] == one[0] and key != one])
        first, second = made.rows[one], made.rows[other]
        for column in columns:
            first[column], second[column] = second[column], (second if copied else first)[column]
        return [one, other], names

    return plant


def _ranged(column: str, factor: float, names: list[str], count: str = "3") -> Plant:
    """Another figure in a cell of a study with ranges, or none where the factor is 0."""

    def edit(made: Submission, key: Key) -> None:
        for row in made.rows.values():
            row |= {"count": "3", TIMES[2]: row[TIMES[0]], TIMES[3]: row[TIMES[0]]}
        text = f"{float(made.rows[key][column]) * factor:.3f}" * (factor != 0)
        made.rows[key] |= {column: text, "count": count}

    return _each(edit, names, "one")


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
    for key, moved in zip(keys, times[-1:] + times[:-1], strict=True):
        made.rows[key] |= moved
    return keys, ["times_swapped"]


def _of_first_batch(made: Submission, rng: Generator, several: list[Key]) -> Found:
    first = min(b for _, b in several)
    for n, b in several:
        made.put((n, b), "speedup", made.values[n, first]["speedup"])
    return [key for key in several if key[1] != first], ["other_batch"]


def _steps(n: int, b: int, images: float = TRAIN_IMAGES) -> int:
    return math.ceil(images / (n * b))


def _rest(v: dict[str, float], m: int) -> float:
    return (v["own"] - v["own single"] / m) / v["communication"]


def _waited(n: int, v: dict[str, float]) -> float:
    return v["seconds"] - v["single"] / n


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
    ("bandwidth", "to_each_peer", lambda n, b, v: v["to each"]),
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
    ("bandwidth", "over_loading", lambda n, b, v: v["communication"] / _waited(n, v)),
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

_ALL = list(FIGURES.values())
ROW = ["another_row", "other_gpus"]
OTHER: list[Plant] = [
    _two_rows(_ALL, ["figures_swapped", *ROW]),
    _two_rows(TIMES, ["times_swapped", *ROW]),
    _two_rows([*TIMES, *_ALL], ["rows_swapped", *ROW]),
    _two_rows(_ALL[:1], ROW),
    _two_rows(_ALL[3:4], ROW),
    _columns(_ALL[1], _ALL[2], False, ["wrong_column", "copied"]),
    _columns(TIMES[0], TIMES[1], False, ["times_exchanged"]),
    _columns(_ALL[0], _ALL[1], True, ["copied", "wrong_column"]),
    _columns(_ALL[3], _ALL[4], True, ["copied"]),
    _scaled(TIMES, 1000, ["time_in_ms"]),
    _scaled(TIMES[:2], 1.21, ["time_contradicted", "time_of_another"]),
    _scaled(TIMES, 1000, ["time_in_ms", "thousand_times"], "one"),
    _scaled(TIMES[:2], 1.21, [], "one"),
    *(
        _scaled([_ALL[number]], factor, [], "one")
        for number, factor in [(0, 1.37), (1, 0.83), (2, 1.37), (3, 1.37), (3, 1e5), (4, 1.37)]
    ),
    _ranged(TIMES[2], 1.1, ["range"]),
    _ranged(TIMES[3], 0.9, ["range"]),
    _ranged(TIMES[2], 0.9, ["range_of_one"], count="1"),
    _ranged(_ALL[2], 0, ["blank_figure"]),
    _each(lambda made, key: made.rows.pop(key), ["missing_cell"], "one"),
    _two_rows(TIMES, ["time_of_another"], copied=True),
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
