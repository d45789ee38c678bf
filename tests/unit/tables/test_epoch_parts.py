"""What an epoch consists of, of a rank that is slow on purpose; and what the audit finds."""

import json
from pathlib import Path

import pandas as pd
import pytest

from examples.delayed import DELAY
from scaling.core.grid import CELL_KEYS, Cell
from scaling.core.records.run import RUN
from scaling.registry import registry
from scaling.tables import schema
from scaling.tables.epoch_parts import audit, communication, epoch_parts, readings
from scaling.tables.measurements import in_memory, slow_ranks
from scaling.tables.timing import timing
from training_runs import run, write_images

ONE = dict(zip(CELL_KEYS, ("plain", "ddp", 2, 512), strict=True))


# It times this machine, so what else runs on it may disturb one try, hardly three.
@pytest.mark.flaky(reruns=2)
def test_a_rank_that_loads_and_computes_longer_is_found_although_epochs_are_equally_long(
    tmp_path, monkeypatch, torch
):
    """Of two processes, the second takes `DELAY` longer for each batch, and again for each step."""
    monkeypatch.setenv(registry.VARIABLE, str(Path(__file__).parents[2] / "examples/delayed.py"))
    write_images(tmp_path)
    options = {"recipe-options": json.dumps({"loader_workers": 0})}
    run(tmp_path, tmp_path / "run.json", engine="delayed", strategy="ddp", gpus=2, **options)
    record = RUN.read(tmp_path / "run.json")
    runs = [(Cell("plain", "ddp", 2, 10, 0), record)]
    times, memory = timing(runs), in_memory(runs)
    (parts,) = epoch_parts(times, memory, communication(times, memory, readings(runs))).itertuples()
    # An epoch is two steps: so long it waits for data, and so long it computes.
    assert parts.data_wait_seconds == pytest.approx(2 * DELAY, rel=0.5)
    assert 2 * DELAY < parts.work_seconds < 3.5 * DELAY
    (told,) = slow_ranks(runs).itertuples()
    assert told.message.startswith("rank 1 computes ") and told.found > 0.5
    both = [[row["seconds"] for row in record["epochs"] if row["rank"] == r] for r in (0, 1)]
    assert both[0] == pytest.approx(both[1], rel=0.25)


def test_an_epoch_takes_at_least_the_time_of_its_operations_at_the_peak():
    used = pd.DataFrame([ONE | {"utilization": 0.4}, ONE | {"utilization": 1.6}])
    slow = pd.DataFrame([ONE | {"message": "rank 1 is slow", "found": 0.25, "expected": 0.05}])
    table = audit(slow, used)
    assert table["found"].tolist() == [0.25, 1.6] and list(table) == schema.columns("audit")
    assert table["message"][1].startswith("the epoch took less time than its operations")
    assert audit(slow[:0], used[:1]).empty
