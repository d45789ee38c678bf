"""Peaks in both states, on this CPU: of a sprint, and of work that goes on."""

from pathlib import Path
from time import perf_counter

from scaling.instruments import peaks
from scaling.instruments.options import Probe
from scaling.tables import limits


def test_the_best_size_of_a_precision_is_read_again_while_work_goes_on():
    sizes = {"matrix_sizes": (8, 256), "copy_bytes": 1000}
    probe = Probe(**sizes, output=Path("x"), repeats=3, sustained_seconds=0.3)
    began = perf_counter()
    rows = list(peaks.rows(probe, "cpu"))
    assert perf_counter() - began > 2 * 0.3
    assert all(len(row["seconds"]) == 3 for row in rows)
    table = limits.peaks({"rows": rows})
    for precision in ("float32", "bf16"):
        own = table[table["precision"] == precision].set_index("state")
        assert own.index.tolist() == ["sprint", "sprint", "sustained"]
        best = own[own["peak"]]["matrix_size"]
        assert best["sprint"] == best["sustained"]
