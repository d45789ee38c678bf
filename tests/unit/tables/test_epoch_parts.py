"""What an epoch consists of, caused: a slow rank, a slow loader."""

import json
import re
from pathlib import Path

import pytest

from examples.delayed import DELAY
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.registry import registry
from scaling.tables import schema
from scaling.tables.audit import slow_rank
from scaling.tables.communication import communication, readings
from scaling.tables.epoch_parts import epoch_parts, in_memory, ranks
from scaling.tables.timing import timing
from training_runs import run, write_images


@pytest.fixture
def delayed(tmp_path, monkeypatch, torch):
    """Runs on two processes, one of which is slow at what it is asked to be slow at."""
    monkeypatch.setenv(registry.VARIABLE, str(Path(__file__).parents[2] / "examples/delayed.py"))
    write_images(tmp_path)

    def make(**slow):
        options = {"loader_workers": 0, "computes_longer": False, "loads_longer": False, **slow}
        path = tmp_path / "run.json"
        changed = {"engine": "delayed", "strategy": "ddp", "gpus": 2}
        run(tmp_path, path, **changed, **{"recipe-options": json.dumps(options)})
        made = RUN.read(path)
        return [(Cell("plain", "ddp", 2, 10, 0), made)]

    return make


def warned(runs):
    """What the audit says of ranks."""
    tables = {"timing": timing(runs), "ranks": ranks(runs)}
    return slow_rank(schema.StudyTables("demo", tables, "", {}))["message"]


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
    (parts,) = epoch_parts(times, memory, communication(times, memory, readings(runs))).itertuples()
    assert parts.data_wait_seconds == pytest.approx(2 * DELAY, rel=0.5)
    # Steps of milliseconds may differ by chance, so one may be said to compute slower as well.
    told = warned(runs).str.extract(r"^rank (\d) .*waits (\d+) % of the epoch for data")
    assert told[told[1].astype(int) > 50][0].tolist() == ["1"]
    first, second = ranks(runs).itertuples()
    assert abs(second.own_epoch_seconds - first.own_epoch_seconds) < DELAY
    assert second.loader_seconds > 1.8 * DELAY > first.loader_seconds
