"""Question 1: claims on the batch size follow the times and the traced steps."""

import pytest

from examples.claim_study import claims, device_time, set_time, study
from scaling.claims import q1


@pytest.fixture(scope="module")
def example():
    return claims(q1.answer, study())


def changed(change):
    return claims(q1.answer, study(change))


def plain(timing, batch, seconds, loader=0.0):
    for strategy in ("dp", "ddp"):
        set_time(timing, ("plain", strategy, 1, batch), seconds, loader)


@pytest.mark.parametrize(
    ("id", "cell", "verdict"),
    [
        ("Q1-faster-plain", (32, 1.0), "refuted"),
        # 3.50 s with batch 128 is no clear difference.
        ("Q1-faster-plain", (32, 3.55), "in part"),
    ],
)
def test_times_are_judged_by_their_ranges(id, cell, verdict):
    assert changed(lambda timing: plain(timing, *cell))[id].verdict == verdict


def test_a_time_measured_once_decides_nothing_and_one_batch_size_makes_no_claim():
    def once(timing):
        timing["count"] = 1

    for busy in (0.0025, 0.0055):
        traced = device_time({32: (0.0075, busy), 2048: (0.07, 0.06)}).assign(count=1)
        found = claims(q1.answer, study(once) | {"device_time": traced})
        del found["Q1-gaps-plain"]
        assert {claim.verdict for claim in found.values()} == {"unclear"}
        assert found["Q1-gaps-fast"].sentence.endswith("; more runs would tell.")
    tables = study()
    tables["timing"] = tables["timing"][tables["timing"]["batch_size"] == 128]
    assert claims(q1.answer, tables)["Q1-faster"].verdict == "not measured"


def gaps(steps, **more):
    traced = device_time(steps).assign(**more)
    return claims(q1.answer, study() | {"device_time": traced})["Q1-gaps-fast"]


@pytest.mark.parametrize(
    ("steps", "seeds", "verdict", "share"),
    [
        # 1250 steps of 7.5 ms less 20 of 70 ms save 7.975 s; of gaps 1250 · 5 ms − 20 · 10 ms.
        ({32: (0.0075, 0.0025), 2048: (0.07, 0.06)}, 3, "supported", "76 %"),
        ({32: (0.0075, 0.0065), 2048: (0.07, 0.06)}, 3, "refuted", "13 %"),
        # 1250 · 3.2 ms = 4 s, ± 1 %.
        ({32: (0.0075, 0.0043), 2048: (0.07, 0.07)}, 3, "unclear", "50 %"),
        # A gap below 0 saves nothing: 1250 · 1 ms, and not 20 · 10 ms more.
        ({32: (0.0075, 0.0065), 2048: (0.07, 0.08)}, 3, "refuted", "16 %"),
        # Half or double of one seed's trace decides it, too.
        ({32: (0.0075, 0.0065), 2048: (0.07, 0.06)}, 1, "refuted", "13 %"),
    ],
)
def test_the_gaps_between_kernels_explain_what_is_saved_or_do_not(steps, seeds, verdict, share):
    claim = gaps(steps, count=seeds)
    assert claim.verdict == verdict
    assert claim.sentence.endswith("more runs would tell.") == (verdict == "unclear")
    assert claim.sentence.startswith(f"Gaps are {share} of the 7.97 s that ")


def test_gaps_need_traced_steps_and_a_saving(example):
    assert example["Q1-gaps-fast"].verdict == "not measured"
    steps = {32: (0.001, 0.0005), 2048: (0.07, 0.06)}
    # 1250 steps of 1 ms are 1.25 s, 20 of 70 ms 1.4 s.
    assert gaps(steps).verdict == "unclear"
    on_cpu = gaps(steps, gap_seconds=None, note="a CPU runs no kernels")
    assert on_cpu.verdict == "not measured" and "A CPU runs no kernels" in on_cpu.sentence
