"""Tables of communication, energy and the power limit, from instruments."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from examples.records import derived, epoch, record, timing_row, timing_table
from scaling.core.grid import Cell
from scaling.tables.measurements import costs, interconnect
from scaling.tables.timing import break_even, provenance

CELL = Cell("plain", "ddp", 2, 128, 0)


def run(seed=0, precision="tf32", flops=4e9, epochs=None, **more):
    """Return a run and its record. By default, the run has three epochs of 10 s."""
    epochs = [epoch(n, 10.0) for n in (2, 3, 4)] if epochs is None else epochs
    made = record(CELL, epochs)
    made["model"]["flops_per_image"] = flops
    made["training"]["recipe_applied"] = {"precision": precision} if precision else None
    return replace(CELL, seed=seed), made | more


def exchange(repeat, *added):
    """Return a run whose slowest rank takes `added` s longer for 10 steps with communication."""
    ranks = [
        {"rank": rank, "iterations": 10, "samples": 2560, "seconds": [slow + one for one in added]}
        | {"seconds_without_exchange": [slow] * len(added)}
        for rank, slow in ((0, 1.0), (1, 0.5))
    ]
    return run(seed=repeat, in_memory=ranks)


def delay(*runs):
    """Return the delay per iteration (s), and its interval. Epochs have 196 iterations."""
    of_epoch = timing_row(2, 128, 30.0, training_seconds=0.112 * 196)
    tables = derived(runs, timing=timing_table(of_epoch))
    row = tables.communication.iloc[0]
    assert math.isnan(row["messages_seconds"])
    return [row[f"delay_seconds{end}"] / 196 for end in ("", "_low", "_high")]


def test_delay_has_the_interval_between_runs():
    # One run: the difference of medians over its blocks, and no interval.
    value, *ends = delay(exchange(0, 0.1, 0.12, 0.16, 0.12))
    assert value == pytest.approx(0.012) and all(map(math.isnan, ends))
    # Shares 11 / 111 and 13 / 113 of the printed 0.112 s; Student's 12.706 · half the difference.
    one, other = 0.112 * 11 / 111, 0.112 * 13 / 113
    middle, off = (one + other) / 2, 12.7062 * (other - one) / 2
    found = delay(exchange(0, 0.10, 0.12), exchange(1, 0.12, 0.14))
    assert found == pytest.approx([middle, middle - off, middle + off], 1e-4)


def cost(*runs):
    return costs(list(runs)).iloc[0]


def energy(one):
    return provenance([one])["joules_per_image"][0]


def test_energy_is_of_all_gpus_and_measured_epochs():
    """The run has 2 ranks, 2 epochs of 10 s and a warm-up epoch, with 25,000 images per rank."""
    epochs = [
        epoch(number, 10.0 - rank, rank=rank, samples=25_000, role=role)
        | {"gpu_readings": [{"energy_joules": 1000.0 * number * (rank + 1)}]}
        for number, role in ((1, "warmup"), (2, "measured"), (3, "measured"))
        for rank in (0, 1)
    ]
    # 2 + 4 and 3 + 6 kJ: 15 kJ of 100,000 images, of 2 epochs.
    assert energy(run(epochs=epochs)) == pytest.approx(0.15)
    # The driver counts in steps: a reading over all epochs of a role comes before those of each.
    read = {"rank": 0, "seconds": 21.0, "joules": [9e3], "power_capped_seconds": 7.0, "counts": ""}
    rows = [read | {"role": "warmup"}, read | {"role": "measured"}]
    rows.append(read | {"rank": 1, "role": "measured", "joules": [11e3]})
    made = run(epochs=epochs, energy=rows)
    assert (energy(made), cost(made).power_capped_share) == pytest.approx((0.2, 1 / 3))
    # One GPU that does not count leaves no figure, nor does an epoch whose GPUs were not read.
    for unknown in ([{"energy_joules": None}], []):
        epochs[-1]["gpu_readings"] = unknown
        assert math.isnan(energy(run(epochs=epochs)))


def test_costs_are_what_seeds_agree_on():
    assert cost(run(), run(seed=1, precision="bf16")).precision == ""
    # A seed that ended before its options were applied does not hide the others.
    found = cost(run(), run(seed=1, flops=None, precision=None, status="oom"))
    assert (found.flops_per_image, found.precision) == (4e9, "tf32")


def test_power_capped_share_is_of_the_most_limited_gpu():
    """Epochs take 10 s. The share is at most 1, although the driver counts in steps."""

    def capped(seed, *seconds):
        capped_seconds = [{"rank": n, "power_capped_seconds": s} for n, s in enumerate(seconds)]
        return run(seed, epochs=[epoch(2, 10.0, **of_rank) for of_rank in capped_seconds])

    share = cost(capped(0, 0, 2), capped(1, 1, 4)).power_capped_share
    assert share == pytest.approx((2 + 4) / 20)
    assert math.isnan(cost(run()).power_capped_share)
    assert cost(capped(0, 10.1)).power_capped_share == 1.0


def test_step_is_of_the_gpu_that_waits_least():
    """A GPU is busy while its messages wait: here for 18 of 14 ms, as the profiler slows a rank."""
    one = {"rank": 0, "iterations": 10, "busy_seconds": 1.8}
    two = one | {"rank": 1, "busy_seconds": 0.4}
    assert cost(run(device_time=[one, two])).step_busy_seconds == pytest.approx(0.04)
    assert math.isnan(cost(run(device_time=[one, {"rank": 1}])).step_busy_seconds)


def test_startup_of_runs_that_compile_is_apart():
    def started(seconds, made, search):
        one = run(startup={"total": seconds, "cudnn_search": search})
        one[1]["training"]["compiled_graphs"] = {"kept": 6 - made, "made": made}
        return one

    found = cost(*(started(*own) for own in ((10.0, 0, 4.0), (50.0, 6, 5.0), (12.0, 0, 5.0))))
    times = found.startup_seconds, found.startup_cold_seconds, found.cudnn_search_seconds
    assert times == (11, 50, 5)
    assert math.isnan(cost(run()).cudnn_search_seconds)


def test_messages_include_waits_if_a_trace_lacks_the_skew():
    trace = {"rank": 0, "iterations": 1, "estimate": "profiler", "communication_seconds": 0.1}
    quiet = {"rank": 0, "iterations": 0, "estimate": "profiler", "note": "no communication"}
    for reading, waits in ((trace, True), (trace | {"start_skew_seconds": 0.0}, False)):
        one = run(communication=run()[1]["communication"] | {"readings": [reading, quiet]})
        assert cost(one).message_waits == waits


A, B, COLD_A = ("a", False, 20.0, 1.0), ("b", False, 20.0, 1.0), ("a", True, 60.0, 1.0)


@pytest.mark.parametrize(
    ("one", "many", "ends"),
    [
        ([A, B], [("a", False, 22.4, 0.5), ("b", False, 19.0, 0.5)], (1, 5)),
        ([A, COLD_A], [("a", False, 20.9, 0.5), ("a", True, 90.0, 0.5)], (2, 2)),
        ([A, COLD_A], [("a", True, 61.1, 0.5)], (3, 3)),
        ([A], [("a", True, 61.1, 0.5)], None),
        ([A], [("a", None, 20.9, 0.5)], None),
        ([A], [("b", False, 20.9, 0.5)], None),
        ([A, B], [("a", False, 22.4, 0.5), ("b", False, 19.0, 1.1)], None),
    ],
)
def test_break_even_compares_start_ups_that_are_alike(one, many, ends):
    columns = ["machine", "compiled", "other_seconds", "epoch_seconds"]
    first, other = (pd.DataFrame(runs, columns=columns).assign(code="c") for runs in (one, many))
    low, high = break_even(first, other).values()
    assert (low, high) == ends if ends else math.isnan(low) and math.isnan(high)
    assert pd.isna([*break_even(first, other.assign(code="d")).values()]).all()


def test_all_reduces_have_the_bandwidths_of_nccl_tests():
    row = {"kind": "sweep", "message_bytes": 3 * 10**9, "correct": True, "launch": "graph"}
    row |= {"seconds": [1.0] * 98 + [2.0, 3.0], "start_skew_seconds": [0.1, 0.3, 0.2]}
    sweep = {"gpus": 4, "backend": "nccl", "environment": {"machine": "m"}}
    (found,) = interconnect([sweep | {"rows": [row]}]).itertuples()
    assert (found.algbw_gb_per_s, found.busbw_gb_per_s) == (3, 3 * 2 * 3 / 4)
    assert (found.seconds, found.seconds_p99) == (1, pytest.approx(2.01))
    assert found.start_skew_seconds == 0.2
