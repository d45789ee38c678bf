"""Question 1: claims on the batch size follow the times and the traced steps."""

import pytest

from examples.claim_study import claims, device_time, set_time, study
from scaling.claims import q1
from scaling.tables import schema


def plain(timing, batch, seconds, loader=0.0):
    for strategy in ("dp", "ddp"):
        set_time(timing, ("plain", strategy, 1, batch), seconds, loader)


@pytest.mark.parametrize(
    ("cell", "verdict"),
    # 3.50 s with batch 128 is no clear difference from 3.55.
    [((32, 1.0), "refuted"), ((32, 3.55), "in part")],
)
def test_times_are_judged_by_their_ranges(cell, verdict):
    made = study(lambda timing: plain(timing, *cell))
    assert claims(q1.answer, made)["Q1-faster-plain"].verdict == verdict


def test_a_time_measured_once_decides_nothing_and_one_batch_size_makes_no_claim():
    def once(timing):
        timing["count"] = 1

    found = claims(q1.answer, study(once))
    assert found["Q1-faster-fast"].verdict == "unclear"
    assert found["Q1-faster-fast"].sentence.endswith("; more runs would tell.")
    tables = study()
    tables["timing"] = tables["timing"][tables["timing"]["batch_size"] == 128]
    assert claims(q1.answer, tables)["Q1-faster"].verdict == "not measured"


def test_the_answer_is_what_a_step_costs_beyond_its_images_and_who_waits():
    """With fast 1250 steps of 5.76 ms; at the rate of 20 of 62 ms for 2048, 32 take 0.97."""
    made = study()
    made = {name: table[table["recipe"] == "fast"] for name, table in made.items()}
    alone = made["timing"][made["timing"]["gpus"] == 1]
    own = alone.assign(loading_share=[0.1, 0.5, 0.8, 0.6, 0.0])
    tables = schema.StudyTables("example", made | {"utilization": own}, "", {})
    assert q1.answer(tables).text == (
        "Each step costs 4.79 ms with fast, besides its images; larger batches take fewer. "
        "From b\u00a0=\u00a0128 fast waits for data (50–80 %)."
    )


@pytest.mark.parametrize(
    ("busy", "seeds", "verdict", "share"),
    [
        # Of steps of 7.5 ms; gaps are ± 1 %.
        (0.0025, 3, "supported", "67 %"),
        (0.0065, 3, "refuted", "13 %"),
        (0.00375, 3, "unclear", "50 %"),
        # Half or double of one seed's trace decides it, too.
        (0.0065, 1, "refuted", "13 %"),
        (0.0025, 1, "unclear", "67 %"),
        # A traced step that took longer than a timed one has no gap.
        (0.0085, 3, "refuted", "0 %"),
    ],
)
def test_the_gaps_between_kernels_are_most_of_a_small_step_or_not(busy, seeds, verdict, share):
    traced = device_time({32: (0.0075, busy), 2048: (0.07, 0.06)}).assign(count=seeds)
    claim = claims(q1.answer, study() | {"device_time": traced})["Q1-gaps-fast"]
    assert claim.verdict == verdict
    assert claim.sentence.startswith(f"Without a kernel: {share} with b\u00a0=\u00a032, 14 % with ")
