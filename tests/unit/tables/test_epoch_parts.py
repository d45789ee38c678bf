"""What an epoch consists of, computed by hand and caused: a slow rank, a slow loader."""

import json
import math
import re
from pathlib import Path

import pytest

from examples.delayed import DELAY
from examples.records import epoch, record
from scaling.audit.finding import Study
from scaling.audit.limits import slow_rank
from scaling.core import plugins
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.tables import schema
from scaling.tables.communication import communication
from scaling.tables.epoch_parts import epoch_parts, in_memory, ranks
from scaling.tables.measurements import readings
from scaling.tables.timing import timing
from training_runs import run, write_images

PAIR = Cell("course", "ddp", 2, 128, 0)


def of_rank(rank, seconds, without=None):
    own = {"rank": rank, "iterations": 10, "samples": 1280, "seconds": seconds}
    return own | {"seconds_without_exchange": without}


def study(cell, epoch_seconds, loader_seconds, measured):
    """The tables of one cell of 25,600 images, each rank's epoch and wait being the same."""
    rows = [
        epoch(number, epoch_seconds, loader_seconds, rank=rank, samples=12_800, iterations=100)
        for number in (2, 3, 4)
        for rank in (0, 1)
    ]
    made = record(cell, rows)
    made["in_memory"] = measured
    runs = [(cell, made)]
    times, memory = timing(runs), in_memory(runs)
    sent = communication(times, readings(runs), memory)
    left_out = sent[sent["estimate"] == "without_communication"]
    parts = epoch_parts(times, memory, sent)
    return memory.iloc[0], left_out.iloc[0], parts.iloc[0], ranks(runs)


def test_the_parts_add_up_to_the_epoch_and_are_those_of_steps_in_memory():
    # The host waits 9 of 10 s, and the GPUs work on: 6 s of steps, 4.5 s without exchange.
    memory, exchange, parts, _ = study(
        PAIR,
        10.0,
        9.0,
        [of_rank(0, [0.5, 0.6, 0.7], [0.2, 0.3, 0.4]), of_rank(1, [0.6, 0.6, 0.6], [0.45] * 3)],
    )
    assert memory.in_memory_epoch_seconds == pytest.approx(6.0)
    assert (memory["count"], memory.in_memory_epoch_seconds_max) == (3, pytest.approx(7.0))
    # Repeat by repeat 0.6 - 0.45, 0.6 - 0.45 and 0.7 - 0.45, so up to 2.5 s.
    assert (exchange.exposed_seconds, exchange.spread_seconds) == pytest.approx((1.5, 1.0))
    found = (parts.compute_seconds, parts.communication_seconds, parts.data_wait_seconds)
    assert found == pytest.approx((4.5, 1.5, 4.0))
    assert parts.communication_estimate == "without_communication"


@pytest.mark.parametrize(
    ("faster", "said"), [(0.001, "within its noise"), (0.1, "beyond its noise")]
)
def test_steps_that_are_slower_without_exchange_are_said_to_be(faster, said):
    # Repeats of 0.5 s ± 2 ms.
    ranks = [of_rank(n, [0.5, 0.502, 0.498], [0.5 + faster] * 3) for n in (0, 1)]
    *_, parts, _ = study(PAIR, 5.0, 0.0, ranks)
    assert parts.communication_seconds == pytest.approx(-10 * faster)
    assert parts.note == f"communication below 0, {said}: steps without it were no faster"


def test_a_host_that_waits_says_nothing_of_compute_without_steps_in_memory():
    *_, parts, slow = study(PAIR, 10.0, 9.0, [])
    assert math.isnan(parts.compute_seconds) and parts.data_wait_seconds == 9.0
    assert parts.note == "not measured in memory: data wait is the host's, so at most this"
    assert len(slow) == 0


@pytest.fixture
def delayed(tmp_path, monkeypatch, torch):
    """Runs on two processes, one of which is slow at what it is asked to be slow at."""
    monkeypatch.setenv(plugins.VARIABLE, str(Path(__file__).parents[2] / "examples/delayed.py"))
    write_images(tmp_path)

    def make(**slow):
        options = {"loader_workers": 0, "computes_longer": False, "loads_longer": False, **slow}
        path = tmp_path / "run.json"
        changed = {"recipe": "delayed", "strategy": "ddp", "gpus": 2}
        run(tmp_path, path, **changed, **{"recipe-options": json.dumps(options)})
        made = RUN.read(path)
        return [(Cell("delayed", "ddp", 2, 10, 0), made)]

    return make


def warned(runs):
    """What the audit says of ranks."""
    empty = {name: schema.frame(name) for name in ("speedup", "communication", "bandwidth")}
    return slow_rank(Study(timing(runs), ranks=ranks(runs), **empty))["message"]


# They time this machine, so what else runs on it may disturb one try, hardly three.
timed = pytest.mark.flaky(reruns=2)


@timed
def test_a_rank_that_computes_longer_is_found_although_all_epochs_are_equally_long(delayed):
    runs = delayed(computes_longer=True)
    first, second = ranks(runs).itertuples()
    # An epoch is two steps.
    assert second.own_epoch_seconds - first.own_epoch_seconds == pytest.approx(2 * DELAY, rel=0.5)
    assert second.slower > 0.5 > first.slower
    (told,) = warned(runs)
    assert re.match(r"rank 1 computes \d+ % slower than the others; it waits .* for data", told)
    both = [[row["seconds"] for row in runs[0][1]["epochs"] if row["rank"] == r] for r in (0, 1)]
    assert both[0] == pytest.approx(both[1], rel=0.25)


@timed
def test_a_slow_loader_is_data_wait_and_neither_compute_nor_communication(delayed):
    runs = delayed(loads_longer=True)
    times, memory = timing(runs), in_memory(runs)
    (parts,) = epoch_parts(times, memory, communication(times, readings(runs), memory)).itertuples()
    assert parts.data_wait_seconds == pytest.approx(2 * DELAY, rel=0.5)
    # Steps of milliseconds may differ by chance, so one may be said to compute slower as well.
    told = warned(runs).str.extract(r"^rank (\d) .*waits (\d+) % of the epoch for data")
    assert told[told[1].astype(int) > 50][0].tolist() == ["1"]
    first, second = ranks(runs).itertuples()
    assert abs(second.own_epoch_seconds - first.own_epoch_seconds) < DELAY
    assert second.loader_seconds > 1.8 * DELAY > first.loader_seconds
