"""What noise leaves of a communication time that was found by subtraction."""

import pandas as pd
import pytest

from examples import report_tables
from examples.records import timing_row, timing_table
from scaling.tables import noise
from scaling.tables.communication import communication
from scaling.tables.speedup import speedup, why_above_gpus


def test_the_noise_of_a_subtraction_is_the_ranges_of_both_times():
    timing = report_tables.cells(missing=False)
    table = (
        noise.communication_resolution(timing)
        .set_index(["recipe", "strategy", "gpus", "batch_size", "estimate"])
        .sort_index()
    )
    found = table.loc[("course", "ddp", 4, 32), "resolution_seconds"]
    # ± 2 % of 3.1 on 4 GPUs, and of 9.8 / 4: 0.124 + 0.098.
    assert found["subtraction"] == pytest.approx(0.222)
    # Without loading ± 1 % of 2.9, and of 9.4 / 4: 0.058 + 0.047.
    assert found["subtraction_without_loading"] == pytest.approx(0.105)
    # 3.1 - 9.8 / 4 is 0.65; 3.038 - 9.996 / 4 and 3.162 - 9.604 / 4.
    ends = table.loc[("course", "ddp", 4, 32, "subtraction"), ["lowest_seconds", "highest_seconds"]]
    assert ends.tolist() == pytest.approx([0.539, 0.761])


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize(("spread", "within"), [(0.05, False), (0.1, True)])
def test_a_subtraction_is_within_noise_where_the_ranges_of_both_times_overlap(
    below, spread, within
):
    # ± 0.1 s from 17 / 2, where both ranges together are 0.1 + 0.1 / 2 s, or twice as much: only
    # then 8.5 s ± 0.1 / 2 and 8.6 s ± 0.1 have times in common.
    seconds = 8.4 if below else 8.6
    rows = [timing_row(gpus, 512, each, spread=spread) for gpus, each in ((1, 17.0), (2, seconds))]
    timing = timing_table(*rows)
    judged = noise.with_resolution(communication(timing), timing)
    assert judged["within_noise"].tolist() == [within, within]
    above = "within noise" in why_above_gpus(next(speedup(timing)[1:].itertuples()), "speedup")
    assert above == (below and within)


def test_noisy_loading_does_not_make_a_time_without_loading_uncertain():
    # 5.4 - 10 / 2 is 0.4 s in both estimates; the whole epochs vary by 1 s, all of it loading.
    one, two = timing_row(1, 128, 10.0, spread=0.5), timing_row(2, 128, 5.4, spread=0.5)
    for row in (one, two):
        row["epoch_seconds_without_loading_min"] = row["epoch_seconds_without_loading_max"] = row[
            "epoch_seconds_without_loading"
        ]
    timing = timing_table(one, two)
    judged = noise.with_resolution(communication(timing), timing)
    assert judged["estimate"].tolist() == ["subtraction", "subtraction_without_loading"]
    assert judged["within_noise"].tolist() == [True, False]


def test_a_reading_of_an_instrument_is_never_within_the_noise_of_a_subtraction():
    timing = timing_table(timing_row(1, 128, 10.0, spread=0.5), timing_row(2, 128, 5.4, spread=0.5))
    reading = communication(timing).head(1).assign(estimate="profiler")
    judged = noise.with_resolution(reading, timing).iloc[0]
    assert not judged["within_noise"] and pd.isna(judged["resolution_seconds"])


def test_the_noise_of_a_time_measured_once_is_unknown():
    timing = report_tables.cells(missing=False).assign(count=1)
    assert noise.communication_resolution(timing)["resolution_seconds"].isna().all()
