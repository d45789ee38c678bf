"""The figures of a study in one list."""

from scaling.tables import schema
from scaling.tables.tidy import tidy

CELL = {"recipe": "mine", "strategy": "own", "gpus": 2, "batch_size": 32}


def test_figures_have_intervals_and_units():
    seconds = {"epoch_seconds": 0.5, "epoch_seconds_low": 0.4, "epoch_seconds_high": 0.6}
    tables = {
        "timing": schema.frame("timing", [CELL | seconds | {"samples": 64, "unit": "tokens"}]),
        "speedup": schema.frame("speedup", [CELL | {"speedup": 1.8}]),
        "utilization": schema.frame("utilization", [CELL | {"images_per_second": 128.0}]),
    }
    found = {row["quantity"]: row for row in tidy(schema.StudyTables("mine", tables))}
    assert found["epoch_seconds"] == {
        "configuration": CELL,
        **{"quantity": "epoch_seconds", "value": 0.5, "interval": [0.4, 0.6], "unit": "s"},
    }
    assert (found["samples"]["unit"], found["samples"]["interval"]) == ("tokens", None)
    assert found["samples_per_second"]["unit"] == "tokens/s" and found["speedup"]["unit"] == "1"
