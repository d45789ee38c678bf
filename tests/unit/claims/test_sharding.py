"""Question 6: the memory that sharding saves."""

import pandas as pd
import pytest

from examples import report_cells
from scaling.claims import messages
from scaling.claims.claim_tables import ClaimTables

K = 94_114_088


def claim(fsdp, device="cuda", status="ok"):
    """The claim where DDP's peak is 3,243.0 MB, as that of resnet50 was at b = 32 on two H200."""
    cell = {"recipe": "plain", "gpus": 2, "batch_size": 32, "status": status}
    costs = [
        cell | {"strategy": name, "peak_memory_bytes": peak}
        for name, peak in (("ddp", 3_243.0e6), ("fsdp", fsdp))
    ]
    sweep = {"kind": "gradients", "gpus": 2, "message_bytes": K}
    run = cell | {"strategy": "ddp", "device": device}
    tables = {"costs": costs, "interconnect": [sweep], "provenance": [run]}
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    frames["timing"] = frames["costs"]
    return [made.verdict for made in messages.sharding(ClaimTables(report_cells.STUDY, frames))]


@pytest.mark.parametrize(
    ("fsdp", "verdict"),
    [
        (2_996.8e6, "supported"),  # as measured: 246.2 MB, of 94.1 to 282.3 MB
        (3_243.0e6 - 146e6, "supported"),  # as measured at b = 256, whose activations are the peak
        (3_243.0e6 - 90e6, "supported"),
        (3_243.0e6 - 80e6, "refuted"),
        (3_243.0e6 - 305e6, "supported"),
        (3_243.0e6 - 315e6, "refuted"),
        (3_300.0e6, "refuted"),
        (float("nan"), "not measured"),
    ],
)
def test_sharding_has_to_save_what_its_formula_says(fsdp, verdict):
    assert claim(fsdp) == [verdict]


def test_what_a_run_held_when_it_ran_out_of_memory_is_no_peak():
    assert claim(2_996.8e6, status="oom") == ["not measured"]


def test_the_memory_of_processes_on_a_cpu_is_no_such_figure():
    assert claim(2_996.8e6, device="cpu") == []
