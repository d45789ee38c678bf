"""Communication by instruments and by subtraction, each with its noise, and which one counts."""

from dataclasses import replace

import pandas as pd
import pytest

from examples.records import epoch, record, timing_row, timing_table
from scaling.core.grid import CELL_KEYS, Cell
from scaling.tables import schema
from scaling.tables.communication import SECONDS, communication, readings
from scaling.tables.epoch_parts import epoch_parts

CELL = Cell("plain", "ddp", 2, 128, 0)
TIMES = timing_table(timing_row(1, 128, 10.0, loader_seconds=1), timing_row(2, 128, 6.0))


def run(repeat, *added):
    """A run whose slowest rank takes so much longer with exchange in 10 steps, repeat by repeat."""
    ranks = [
        {"rank": rank, "iterations": 10, "samples": 2560, "seconds": [slow + one for one in added]}
        | {"seconds_without_exchange": [slow] * len(added)}
        for rank, slow in ((0, 1.0), (1, 0.5))
    ]
    return replace(CELL, repeat=repeat), record(CELL, [epoch(2, 6.0)]) | {"in_memory": ranks}


@pytest.mark.parametrize(
    ("runs", "ends"),
    [
        # Per step: half and double of a lone reading, also below 0.
        ([run(0, 0.1)], (0.01, 0.005, 0.02)),
        ([run(0, -0.1)], (-0.01, -0.02, -0.005)),
        # The range of three repeats to either side of their median.
        ([run(0, 0.1, 0.12, 0.16)], (0.012, 0.006, 0.018)),
        # Medians 0.011 and 0.013: Student's 12.706 · 0.002 / √2 / √2.
        ([run(0, 0.10, 0.12), run(1, 0.12, 0.14)], (0.012, 0.012 - 0.0127062, 0.012 + 0.0127062)),
    ],
)
def test_a_reading_has_the_noise_between_runs_else_between_repeats_else_half_and_double(runs, ends):
    (found,) = readings(runs).to_dict("records")
    assert found["estimate"] == "without_communication"
    assert [found[name] for name in (SECONDS[0], "low", "high")] == pytest.approx(ends, rel=1e-4)


@pytest.mark.parametrize(
    ("read", "preferred", "seconds"),
    [
        # 6 s less half of 9 s without loading.
        ([], "subtraction_without_loading", 1.5),
        (["profiler"], "profiler", 0.2),
        (["profiler", "without_communication"], "without_communication", 0.1),
    ],
)
def test_steps_without_exchange_come_before_the_trace_and_that_before_subtraction(
    read, preferred, seconds
):
    values = {"profiler": 0.2, "without_communication": 0.1}
    steps = TIMES["iterations"].iloc[1]
    rows = [dict(zip(CELL_KEYS, ("plain", "ddp", 2, 128), strict=True)) for _ in read]
    found = [
        row | {"estimate": name} | dict.fromkeys(SECONDS, values[name] / steps)
        for row, name in zip(rows, read, strict=True)
    ]
    memory = schema.frame("in_memory")
    table = communication(TIMES, memory, pd.DataFrame(found, columns=readings([]).columns))
    parts = epoch_parts(TIMES, memory, table).iloc[1]
    assert parts["communication_estimate"] == preferred
    assert parts["communication_seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize(("gpus", "known"), [(1, False), (2, False), (4, True)])
def test_nothing_is_subtracted_where_the_gpu_worked_while_its_host_waited(gpus, known):
    row = {"recipe": "plain", "strategy": "ddp", "gpus": gpus, "batch_size": 128}
    memory = schema.frame("in_memory", [row | {"in_memory_epoch_seconds": 9.5}])
    table = communication(TIMES, memory, readings([]))
    assert table["communication_seconds"].notna().tolist() == [known]
