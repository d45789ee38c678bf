"""The cost model on times whose parameters are known, and what is said of its predictions."""

import math

import numpy as np
import pandas as pd
import pytest

from examples.records import GRADIENT_BYTES, timing_row, timing_table
from scaling.tables import cost_model
from scaling.tables.cost_model import from_sweep, without_sweep
from scaling.tables.limits import fit, interconnect
from scaling.tables.prediction import predict

NO_SWEEP = fit(interconnect([]))
FIXED, IMAGE, TRAVEL, WAITING = 2e-3, 3e-4, 5e-3, 2e-5
GRID = [(gpus, batch) for gpus in (1, 2, 4) for batch in (32, 128, 512)]


def row(gpus, batch, strategy="ddp", **values):
    """A cell of exactly that cost: a ring of N travels 2(N-1)/N times, DataParallel 2(N-1) times.

    50,000 images; DataParallel loads all of them in one process.
    """
    iterations = math.ceil(50_000 / (gpus * batch))
    travels = 2 * (gpus - 1) / (gpus if strategy == "ddp" else 1)
    step = FIXED + TRAVEL * travels
    loading = WAITING * 50_000 / (gpus if strategy == "ddp" else 1)
    seconds = iterations * step + 50_000 / gpus * IMAGE + loading
    return timing_row(gpus, batch, seconds, strategy=strategy, loader_seconds=loading) | values


def parameters(*rows):
    model, _ = predict(timing_table(*rows), NO_SWEEP, GRADIENT_BYTES)
    return model.set_index("parameter")


@pytest.mark.parametrize("strategy", ["ddp", "dp"])
def test_the_parameters_that_made_the_times_are_found(strategy):
    found = parameters(*(row(*cell, strategy) for cell in GRID))
    expected = [FIXED, IMAGE, TRAVEL, WAITING]
    assert found["value"].tolist() == pytest.approx(expected, rel=1e-4)
    assert found["cells"].tolist() == [9] * 4


def test_unmeasured_cells_follow_the_formula():
    _, found = predict(timing_table(*(row(*cell) for cell in GRID)), NO_SWEEP, GRADIENT_BYTES)
    cells = found[~found["measured"]].set_index(["gpus", "batch_size"])
    # 8 GPUs, b=512: 13 steps of 2 ms + 1.75 · 5 ms, 6,250 images of 0.3 ms and 0.02 ms
    assert cells.loc[(8, 512), "predicted_seconds"] == pytest.approx(
        13 * (2e-3 + 8.75e-3) + 6_250 * 3.2e-4, rel=1e-4
    )
    # T(1) = 98 · 2 ms + 50,000 · 0.32 ms = 16.196; 16.196 / 2.13975 / 8
    assert cells.loc[(8, 512), "predicted_efficiency"] == pytest.approx(0.94614, abs=1e-4)
    assert cells.loc[(8, 512), "gpu_seconds"] == pytest.approx(8 * 2.13975, rel=1e-4)
    assert max(cells.index.get_level_values("gpus")) == 1024
    # 128 · 512 = 65,536 images are more than there are; 64 · 512 = 32,768 are not
    assert (64, 512) in cells.index and (128, 512) not in cells.index
    assert (1024, 32) in cells.index and (512, 128) not in cells.index


def test_without_times_on_several_gpus_nothing_is_said_of_more():
    timing = timing_table(*(row(1, batch) for batch in (32, 128, 512, 2048)))
    model, found = predict(timing, NO_SWEEP, GRADIENT_BYTES)
    assert found["measured"].all() and found["held_out_seconds"].isna().all()
    note = model.set_index("parameter").note
    assert note["communication"] == "the times do not determine it"
    assert note["fixed"] == ""


def test_without_times_without_loading_waiting_is_not_told_from_compute():
    rows = [row(*cell, epoch_seconds_without_loading=math.nan) for cell in GRID]
    found = parameters(*rows)
    assert math.isnan(found["value"]["waiting"])
    assert found["value"]["image"] == pytest.approx(IMAGE + WAITING, rel=1e-4)


def test_fewer_than_three_times_make_no_model():
    model, found = predict(timing_table(row(1, 32), row(2, 32)), NO_SWEEP, GRADIENT_BYTES)
    assert model.note.tolist() == ["fewer than 3 cells with a time"]
    assert found.empty


def test_cells_that_are_not_ok_or_larger_than_the_training_set_are_left_out():
    rows = [
        row(1, 32),
        row(1, 131_072),
        timing_row(2, 32, status="oom"),
        row(4, 32, status="diverged"),
    ]
    assert cost_model.timed(timing_table(*rows))["batch_size"].tolist() == [32]


SIMULATED = [(gpus, batch) for gpus in (1, 2, 4) for batch in (32, 128, 512, 2048)]


def test_intervals_hold_the_truth_as_often_as_they_say():
    # A cell's noise of 2 % is in both of its times; one of 5 % is in its loading alone.
    random = np.random.default_rng(7)
    draws, parameter, cell = 60, 0, 0
    truth = row(8, 512)["epoch_seconds"]
    for _ in range(draws):
        rows = []
        for place in SIMULATED:
            exact = row(*place)
            without = exact["epoch_seconds_without_loading"] * (1 + 0.02 * random.normal())
            loading = exact["loader_seconds"] * (1 + 0.05 * random.normal())
            rows.append(
                exact
                | {"epoch_seconds": without + loading, "epoch_seconds_without_loading": without}
            )
        model = cost_model.fit(timing_table(*rows), without_sweep("ddp"))
        _, low, high = model.interval("image")
        parameter += low < IMAGE < high
        _, low, high = model.epoch_seconds(8, 512, 50_000)
        cell += low < truth * (1 + 0.02 * random.normal()) < high
    # 95 % of 60 are 57, give or take 1.7: at least 53 by chance, and not always.
    assert 53 <= parameter <= draws
    assert 53 <= cell < draws


def test_no_more_cells_than_parameters_give_no_interval():
    found = parameters(row(1, 32), row(2, 32), row(2, 128), row(1, 512))
    assert found["value"].notna().all()
    assert found["low"].isna().all() and found["high"].isna().all()


def test_dataparallel_is_predicted_on_one_machine_only():
    _, found = predict(timing_table(*(row(*cell, "dp") for cell in GRID)), NO_SWEEP, GRADIENT_BYTES)
    assert set(found[~found["measured"]]["gpus"]) == {8}


def test_a_measured_all_reduce_sets_the_scale_of_communication():
    # Lines of 10 µs a step and 100 GB/s: α = 10 µs · 2(N-1), β = 2(N-1)/N / 100e9
    fits = pd.DataFrame(
        {
            "gpus": [2, 4],
            "latency_seconds": [20e-6, 60e-6],
            "seconds_per_byte": [1e-11, 1.5e-11],
        }
    )
    allreduce = from_sweep(fits, 1e9)
    assert allreduce(2) == pytest.approx(20e-6 + 0.01)
    assert allreduce(8) == pytest.approx(140e-6 + 0.0175)
