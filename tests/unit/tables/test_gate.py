"""The gate of continuous integration: what is slower, what is not, what cannot be judged."""

import pytest

from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.tables import gate

NOISE = (0.004, -0.004, 0.002, -0.002, 0.003, -0.003)


def runs(seconds, recipe="mine", machine="a", samples=100):
    """Runs of a command of so many seconds an epoch, each a repeat."""
    made = []
    for repeat, each in enumerate(seconds):
        rows = [
            {"epoch": number, "rank": 0, "role": "measured", "seconds": each, "samples": samples}
            | {"loader_seconds": None, "power_capped_seconds": None, "iterations": 1}
            for number in range(1, 4)
        ]
        record = {"status": "ok", "epochs": rows, "training": {"engine": "command"}}
        record["environment"] = {"machine": machine, "code_digest": "x", "hosts": ["h"]}
        made.append((Cell(recipe, "own", 2, 32, 0, repeat), record))
    return made


def around(seconds):
    return [seconds * (1 + off) for off in NOISE]


@pytest.mark.parametrize(
    ("b", "status", "said"),
    [
        (runs(around(1.05)), 2, "**slower**, 5.0 % slower"),
        (runs(around(1.015)), 0, "slower, 1.5 % slower"),
        (runs(around(1.0)), 0, "same"),
        (runs(around(0.9)), 0, "faster, 10.0 % faster"),
        (runs(around(4.5)), 2, "350.0 % slower"),
        (runs(around(1.05), machine="b"), 3, "no chain of machines"),
        (runs([1.05]), 2, "slower"),
        (runs(around(1.05), samples=200), 0, "faster"),
        (runs(around(1.05), "other"), 3, "| configuration"),
    ],
)
def test_gate_judges_by_limit_and_noise(b, status, said):
    found = gate.judge(runs(around(1.0)), b, limit=0.02)
    assert gate.status(found) == status and said in gate.markdown(found)


def test_one_run_of_each_is_not_judged():
    found = gate.judge(runs([1.0]), runs([1.5]), limit=0.02)
    assert gate.status(found) == 3 and "1 run: no interval" in gate.markdown(found)


def test_pairs_find_one_percent():
    """Six pairs of a machine that drifts by 20 % find 1 %; the same against itself is the same."""
    drift = [1.0, 1.2, 1.15, 1.05, 1.1, 1.02]
    a = [one * (1 + off / 8) for one, off in zip(drift, NOISE, strict=True)]
    b = [one * (1.01 - off / 8) for one, off in zip(drift, NOISE, strict=True)]
    judge = {"limit": 0.005, "paired": True, "renamed": True}
    found = gate.judge(runs(a, "old"), runs(b, "new"), **judge)
    assert gate.status(found) == 2 and found["slower"].tolist() == pytest.approx([0.01], abs=2e-4)
    assert found["scope"].tolist() == ["6 pairs, one machine"]
    again = gate.judge(runs(a, "old"), runs(a[::-1][::-1], "old"), **judge)
    assert gate.status(again) == 0 and again["verdict"].tolist() == ["same"]


@pytest.mark.parametrize(("text", "limit"), [("2%", 0.02), ("0.5 %", 0.005), ("0.03", 0.03)])
def test_limit_is_a_percentage_or_a_fraction(text, limit):
    assert gate.limit_of(text) == pytest.approx(limit)


def test_limit_of_words_is_refused():
    with pytest.raises(UserError, match="FAIL is 'much'"):
        gate.limit_of("much")
