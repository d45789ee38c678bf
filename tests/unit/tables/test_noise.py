"""What noise leaves of a communication time that was found by subtraction."""

import pandas as pd
import pytest

from examples.records import timing_row, timing_table
from scaling.tables import noise
from scaling.tables.communication import communication
from scaling.tables.speedup import speedup, why_above_gpus


def judged(*rows):
    timing = timing_table(*rows)
    return noise.with_resolution(communication(timing), timing)


def test_the_noise_of_a_subtraction_is_the_ranges_of_both_times():
    one, four = timing_row(1, 32, 9.8, spread=0.196), timing_row(4, 32, 3.1, spread=0.062)
    found = judged(one, four).iloc[0]
    # 2 · 0.062 of 3.1 on 4 GPUs, and 2 · 0.196 of 9.8 / 4: 0.124 + 0.098.
    assert found.resolution_seconds == pytest.approx(0.222)
    # 3.1 - 9.8 / 4 is 0.65; 3.038 - 9.996 / 4 and 3.162 - 9.604 / 4.
    assert (found.lowest_seconds, found.highest_seconds) == pytest.approx((0.539, 0.761))
    # That of a time measured once is unknown.
    assert judged(one | {"count": 1}, four)["resolution_seconds"].isna().all()


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize(("spread", "within"), [(0.05, False), (0.1, True)])
def test_a_subtraction_is_within_noise_where_the_ranges_of_both_times_overlap(
    below, spread, within
):
    # ± 0.1 s from 17 / 2, where both ranges together are 0.1 + 0.1 / 2 s, or twice as much: only
    # then 8.5 s ± 0.1 / 2 and 8.6 s ± 0.1 have times in common.
    seconds = 8.4 if below else 8.6
    rows = [timing_row(gpus, 512, each, spread=spread) for gpus, each in ((1, 17.0), (2, seconds))]
    assert judged(*rows)["within_noise"].tolist() == [within, within]
    faster = next(speedup(timing_table(*rows))[1:].itertuples())
    assert ("within noise" in why_above_gpus(faster, "speedup")) == (below and within)


def test_noisy_loading_does_not_make_a_time_without_loading_uncertain():
    # 5.4 - 10 / 2 is 0.4 s in both estimates; the whole epochs vary by 1 s, all of it loading.
    column = "epoch_seconds_without_loading"
    rows = [timing_row(gpus, 128, each, spread=0.5) for gpus, each in ((1, 10.0), (2, 5.4))]
    rows = [row | {f"{column}_{end}": row[column] for end in ("min", "max")} for row in rows]
    assert judged(*rows)["within_noise"].tolist() == [True, False]
    # A reading of an instrument is never within the noise of a subtraction.
    timing = timing_table(*rows)
    reading = communication(timing).head(1).assign(estimate="profiler")
    found = noise.with_resolution(reading, timing).iloc[0]
    assert not found["within_noise"] and pd.isna(found["resolution_seconds"])
