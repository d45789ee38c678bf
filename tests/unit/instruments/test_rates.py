"""Peak rates on this CPU (in a burst and sustained), and the time of an all-reduce."""

from pathlib import Path
from time import perf_counter

import pytest
import torch

from scaling.instruments import allreduce, peaks
from scaling.launch.measure import Probe, Sweep
from scaling.launch.ranks import Rank
from scaling.tables import measurements


def test_peaks_repeat_the_best_size_for_a_sustained_rate():
    sizes = {"matrix_sizes": [8, 256], "copy_bytes": 1000}
    probe = Probe(**sizes, output=Path("x"), repeats=3, sustained_seconds=0.3)
    began = perf_counter()
    rows = list(peaks.rows(probe, "cpu"))
    assert perf_counter() - began > 2 * 0.3
    assert all(len(row["seconds"]) == 3 for row in rows)
    table = measurements.peaks([{"rows": rows, "environment": {"machine": "m"}}])
    for precision in ("float32", "bf16"):
        own = table[table["precision"] == precision].set_index("state")
        assert own.index.tolist() == ["sprint", "sprint", "sustained"]
        best = own[own["peak"]]["matrix_size"]
        assert best["sprint"] == best["sustained"]


def test_gpu_older_than_ampere_is_measured_in_float32(monkeypatch):
    monkeypatch.setattr(peaks.torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(peaks.environment, "older_gpu", {peaks.environment.AMPERE: "7.5"}.get)
    monkeypatch.setattr(peaks, "REST_SECONDS", 0)
    for timed in ("_matrix_product", "_copy"):
        monkeypatch.setattr(peaks, timed, lambda *_: [1.0])
    probe = Probe(matrix_sizes=[8], copy_bytes=8, output=Path("x"), repeats=3)
    assert {row.get("precision") for row in peaks.rows(probe, "cuda")} == {"float32", None}


@pytest.mark.parametrize(
    ("kind", "sent"),
    # What the other of two ranks has, 2 p, is added in each of the iterations.
    [("all_reduce", None), ("broadcast", None), ("reduce", lambda message, p: message.add_(2 * p))],
)
def test_message_takes_the_slowest_ranks_time_and_is_checked(monkeypatch, kind, sent):
    pattern = torch.tensor([1.0, 2.0])

    def send(message, **_):
        if sent:
            sent(message, pattern)

    monkeypatch.setattr(allreduce.dist, kind, send)
    slow = [100.0, 100.0, 100.0], True
    monkeypatch.setattr(Rank, "gather", lambda rank, own: [own, slow])
    sweep = Sweep(output=Path("x"), manifest=Path("x"), gpus=1, message_bytes=[8], repeats=3)
    rank = Rank(0, 0, 2 if sent else 1, torch.device("cpu"))
    monkeypatch.setattr(Rank, "barrier", lambda rank: None)
    seconds, skew, correct = allreduce._measure(sweep, rank, kind, 8)
    assert (seconds, correct) == slow
    assert skew == pytest.approx([100.0 * sweep.iterations] * 3, rel=1e-2)
