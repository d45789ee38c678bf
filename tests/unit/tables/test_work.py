"""Samples in an epoch of a user's command, and findings on its runs."""

import math

import pytest

from examples.records import timing_row, timing_table
from scaling.core.grid import Cell
from scaling.report.cells import fastest
from scaling.tables import work

RECIPES = {"mine": {"unit": "tokens", "samples": None}}


def settled(rows, recipes=RECIPES, iterations=0, **training):
    """Return the timing and the findings for rows (GPUs, seconds, samples). Each row is one run."""
    rows = [(*row, 32)[:4] for row in rows]
    cells = [Cell("mine", "ddp", gpus, size, 0) for gpus, _, _, size in rows]
    records = [
        {"message": None, "training": training, "environment": {"started": str(number)}}
        | {"cell": vars(cell)}
        for number, cell in enumerate(cells)
    ]
    timed = [
        timing_row(gpus, size, seconds, recipe="mine", samples=samples, iterations=iterations)
        for gpus, seconds, samples, size in rows
    ]
    runs = list(zip(cells, records, strict=True))
    table, findings = work.settle(timing_table(*timed), runs, recipes)
    return table, [*findings.get("message", [])]


@pytest.mark.parametrize(
    ("rows", "requested", "samples", "message"),
    [
        ([(1, 0.5, 3200), (2, 0.55, 6400)], None, [3200, 6400], "speedup is that of throughput"),
        ([(1, 0.6, 4096), (2, 0.3, 2048)], None, [4096, 4096], "taken for one process's"),
        ([(1, 0.6, 4096), (2, 0.6, 4096)], None, [4096, 4096], "if each process trains so many"),
        ([(1, 0.6, 4096), (2, 0.6, 4096)], "rank", [4096, 8192], None),
        ([(1, 0.6, 4096), (2, 0.3, 2048)], "all", [4096, 2048], "speedup is that of throughput"),
        ([(1, 0.6, 4096), (2, 0.3, 4096)], None, [4096, 4096], None),
        ([(1, 0.6, 3000, 200), (2, 0.3, 1400, 200)], None, [3000, 2800], "for one process's"),
        # One GPU has no run of batch 16, so its samples are counted as those of batch 32.
        ([(1, 6, 4096), (2, 3, 2048), (2, 6, 2048, 16)], None, [4096] * 3, "for one process's"),
        ([(1, 6, 4096), (2, 3, 4096), (2, 6, 2048, 16)], None, [4096, 4096, 2048], None),
    ],
)
def test_samples_of_an_epoch_are_those_of_all_ranks(rows, requested, samples, message):
    table, messages = settled(rows, {"mine": RECIPES["mine"] | {"samples": requested}})
    assert table["samples"].tolist() == samples and set(table["unit"]) == {"tokens"}
    assert len(messages) == bool(message) and (not message or message in messages[0])


def test_steps_that_contradict_printed_samples_are_named():
    recipes, words = {"mine": {"unit": "samples", "samples": None}}, "of 64 samples are more than "
    for iterations, seconds, warned in ((33, [1], 0), (16, [1], 0), (64, [], 0), (64, [1], 1)):
        found = settled([(2, 0.3, 2048)], recipes, iterations, step_seconds=seconds)[1]
        assert sum(f"{words}the 2,048 printed" in one for one in found) == warned
    of_rank = {"mine": {"unit": "samples", "samples": "rank"}}
    assert not settled([(2, 0.3, 2048)], of_rank, 64, step_seconds=[1])[1]
    assert not settled([(2, 0.3, 2048)], RECIPES, 64, step_seconds=[1])[1]


def test_whole_run_shorter_than_imports_is_doubtful():
    table, (message,) = settled([(1, 0.5, 0)], epoch_lines=0)
    assert table["whole"].all() and table[work.PRINTED].isna().all(axis=None)
    assert fastest(table) is None
    assert "whole run counts" in message and "did it train" in message
    assert "did it train" not in settled([(1, 50.0, 0)], epoch_lines=0)[1][0]


def test_files_of_an_earlier_run_are_named():
    _, messages = settled([(1, 9, 0), (2, 9, 0)], written=["last.ckpt"], read=["train.py"])
    assert len(messages) == 1 and "(last.ckpt)" in messages[0]


def test_fastest_command_has_the_most_samples_a_second():
    table, _ = settled([(1, 0.5, 3200), (2, 0.55, 6400)])
    assert fastest(table).gpus == 2
    assert fastest(table.assign(samples=math.nan)).gpus == 1
