"""The table of knobs, by cases computed by hand: 2 GPUs, 40 MB of gradients, a link of 10 GB/s."""

import math

import pytest

from scaling.report import frames, table
from scaling.report.answers import ANSWERS
from scaling.tables import schema
from scaling.tables.experiments.knobs import knobs


def turns(milliseconds, alone, count):
    """So many times of ten steps; rank 0 is faster than rank 1."""
    times = {"seconds": milliseconds / 100, "seconds_without_exchange": alone / 100}
    spread = [0.998, *[1] * (count - 2), 1.002]
    return [{k: [0.9 * s * value, s * value] for k, value in times.items()} for s in spread]


def row(knob, milliseconds, megabytes, plain=10.0, alone=9.0, batches=1):
    sent = [("forward", 4800), ("backward", megabytes * 1e6 - 1000), ("backward", 1000)]
    return {
        "knob": knob,
        "batches": batches,
        "iterations": 10,
        "messages": [{"phase": phase, "bytes": size} for phase, size in sent],
        "own": turns(milliseconds, alone, 3),
        "plain": turns(plain, 9.0, 4),
    }


def made(*rows, link=10.0, again=10.0):
    first = row("plain DDP", again, 40)
    document = {"cell": {"gpus": 2, "batch_size": 32}, "rows": [first, *rows]}
    fits = schema.frame("interconnect_fit", [{"gpus": 2, "asymptotic_busbw_gb_per_s": link}])
    return knobs([document], fits)


def found(*rows, link=10.0):
    return made(*rows, link=link).iloc[-1]


def test_times_are_the_slowest_ranks_and_savings_those_against_the_plain_steps_beside():
    one = found(row("bf16", 10.5, 20))
    assert one["seconds"] == pytest.approx(10.5e-3) and one["count"] == 3
    assert one["plain_seconds"] == pytest.approx(10e-3) and one["drift"] == pytest.approx(2 / 499)
    assert one["saved_seconds"] == pytest.approx(-0.5e-3)
    assert one["saved_share"] == pytest.approx(-0.05)
    assert (one["verdict"], one["bytes_sent"]) == ("costs", 20_000_000)


@pytest.mark.parametrize(
    ("knob", "gb_per_s"),
    [
        # The backward pass hides 40 MB at 40 / 6 GB/s; 0.5 ms more are made up for at 40 / 6.5.
        (row("bf16", 10.5, 20), 40 / 6.5),
        # Both show at 3.33 GB/s, where 6 ms are saved: 20 MB less make up for 8 ms at 20 / 8.
        (row("slow hook", 18.0, 20), 20 / 8),
        # Half as much is sent, and one of two backward passes hides it: both show below 6.67 GB/s.
        (row("two batches", 10.5, 40, batches=2), 20 / 3.5),
        # No difference but noise: where plain steps begin to wait.
        (row("even", 10.02, 20), 40 / 6),
        (row("always", 9.0, 20), math.inf),
        (row("buckets", 9.0, 40), math.nan),
    ],
)
def test_the_link_below_which_a_knob_would_save(knob, gb_per_s):
    assert found(knob)["pays_below_gb_per_s"] == pytest.approx(gb_per_s, nan_ok=True)


@pytest.mark.parametrize(("link", "verdict"), [(6.3, "costs"), (6.0, "saves")])
def test_the_verdict_turns_at_that_link(link, verdict):
    """Plain steps wait for 40 MB / link - 6 ms, those that send half do not."""
    waits = 40 / link - 6
    one = found(row("bf16", 10.5, 20, plain=10 + waits), link=link)
    assert one["verdict"] == verdict
    assert one["pays_below_gb_per_s"] == pytest.approx(40 / 6.5)


def test_what_differs_no_more_than_two_plain_ones_is_noise():
    table = made(row("bf16", 10.5, 20), row("slow hook", 10.7, 20), again=9.4)
    assert table["verdict"].tolist() == ["within noise", "within noise", "costs"]


def test_without_a_sweep_no_link_is_named():
    one = found(row("bf16", 10.5, 20), link=math.nan)
    assert one["verdict"] == "costs" and math.isnan(one["pays_below_gb_per_s"])


def test_the_report_says_first_what_saves():
    told = made(row("PowerSGD", 12.0, 2), row("bf16_compression", 8.0, 20))
    study = schema.StudyTables("mine", {"knobs": told}, "", {})
    said = ANSWERS["knobs"](study, None).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(
        "bf16 compression saves 20 % at 2 GPUs, b = 32; PowerSGD costs 20 % at 2 GPUs, b = 32; "
        "PowerSGD would save below 5.00 GB/s"
    )
    (shown,) = table.tables("knobs", lambda name: frames.frame(study, name))
    assert [cell.text for cell in shown.rows[2][-3:]] == ["20.0 MB", "20 %", "any"]
    empty = schema.StudyTables("mine", {}, "", {})
    assert ANSWERS["knobs"](empty, None) is None
