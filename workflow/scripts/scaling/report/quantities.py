"""Define heading and format of each quantity on a study's page."""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pandas as pd

from scaling.claims.claim import SYMBOLS, label
from scaling.claims.scaling import PARTS
from scaling.core.numbers import data, gpus, percent, rate, significant, span, times, words
from scaling.report.table import QUANTITIES, Column, OfRow, cell_id
from scaling.tables.schema import configuration


def define(**columns: Column) -> None:
    """Add `columns` to `QUANTITIES`. Their names must be new."""
    assert QUANTITIES.keys().isdisjoint(columns), columns
    for name, column in columns.items():
        QUANTITIES[name] = replace(column, name=column.name or name, quantity=name)


def on(row: Any) -> str:
    """Return recipe, strategy and GPUs of a row as text: `tuned/ddp, 2 GPUs`."""
    return f"{configuration(row.recipe, row.strategy)}, {gpus(row.gpus)}"


def below(row: Any) -> str:
    """Return communication (s) as text: `0.52`, or `<0.1` for an interval from below 0 to 0.1."""
    low, high = row.exchange_seconds_low, row.exchange_seconds_high
    return f"<{significant(high, 2)}" if low < 0 else significant(row.exchange_seconds, 2)


def ends(row: Any) -> str:
    """Return the interval of communication (s), `0.4–0.6`; "" if unknown or starting below 0."""
    low, high = row.exchange_seconds_low, row.exchange_seconds_high
    return span(low, high, digits=2) if low >= 0 else ""


def compiling(row: Any) -> str:
    """Return `compiling: 95` (start-up, s); `compiling` if all runs compiled code; "" if none."""
    cold = row.startup_cold_seconds
    seconds = "" if cold == row.other_seconds else f": {significant(cold)}"
    return "" if pd.isna(cold) else f"compiling{seconds}"


def lengths(row: Any) -> str:
    """Return from how many epochs on a row beats one GPU: `31`, or `1–38` by machine."""
    return "–".join(dict.fromkeys(map(count, (row.break_even_min, row.break_even_max))))


def rates(row: Any) -> str:
    """Return the range of a peak rate, `341–414`; "" if it was measured once."""
    low, high = (rate(value, row.unit) for value in (row.value_min, row.value_max))
    return f"{low.split()[0]}–{high.split()[0]}" if row.merged > 1 else ""


def scaled(factor: float) -> Callable[[float], str]:
    """Return a function that formats `factor` · value with 3 significant digits."""
    return lambda value: significant(factor * value)


def fixed(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def hundredths(share: float) -> str:
    """Return a fraction in percent, without the percent sign."""
    return percent(share).removesuffix(" %")


whole, count = "{:.0f}".format, "{:,.0f}".format
JUDGED: dict[str, OfRow] = {
    "unclear": lambda row: row.verdict == "unclear",
    "same": lambda row: row.verdict == "same",
}
"""Maps each flag to a test of a row: `same` if the speedup is about 1, `unclear` if the runs do not
show whether it is above or below 1."""


def above(ratio: str) -> dict[str, OfRow]:
    """Return the flag `superlinear`: the speedup `ratio` is above the number of GPUs."""
    return {"superlinear": lambda row: getattr(row, ratio) > row.gpus}


define(
    configuration=Column(
        "configuration", text=lambda row: configuration(row.recipe, row.strategy), name="recipe"
    ),
    page=Column(
        "configuration",
        text=label,
        name="recipe",
        flags={
            "not settled": lambda row: row.unsettled,
            "not all runs ok": lambda row: row.status != "ok" and pd.notna(row.epoch_seconds),
        },
        link=cell_id,
    ),
    configuration_on=Column("batch size per GPU", text=on, name="recipe"),
    gpus=Column("GPUs", whole),
    batch_size=Column("b", whole),
    epoch_seconds=Column("epoch, s", significant),
    training_seconds=Column("training", significant),
    speedup=Column("speedup", times, attrgetter("scope"), flags=JUDGED | above("speedup")),
    training_speedup=Column("speedup", times, flags=above("training_speedup")),
    fixed_global_batch_speedup=Column(
        "strong speedup", times, flags=above("fixed_global_batch_speedup")
    ),
    efficiency=Column("efficiency", percent),
    factor=Column("speedup", times),
    rank_step_seconds=Column("step of a rank, ms", scaled(1e3)),
    job_seconds=Column("whole run, s", significant),
    break_even=Column("pays from, epochs", text=lengths, name="break_even_min"),
    computing_seconds=Column("computing", significant),
    exchange_seconds=Column("communication", detail=ends, text=below),
    gpu_seconds=Column("GPU-seconds", significant),
    epoch_joules=Column("kJ", scaled(1e-3)),
    money_per_epoch=Column("money an epoch", significant),
    messages_seconds=Column("all messages", significant),
    flops_per_second_per_gpu=Column("TFLOP/s a GPU", scaled(1e-12)),
    **{name: Column(words_of, percent) for name, words_of in PARTS.items()},
    loading_percent=Column("data wait, %", hundredths, name="loading_share"),
    idle_share=Column("GPU idle, in all", percent),
    power_capped_share=Column("at the power limit", percent),
    joules_per_image=Column("J a sample", significant),
    images_per_second=Column("samples/s", significant),
    bandwidth_gb_per_s=Column("GB/s", significant),
    link_utilization=Column("share", percent, name="utilization"),
    iterations=Column("steps", count),
    message_bytes=Column("message", data),
    message_kind=Column("what", words, name="kind"),
    message_seconds=Column("µs", scaled(1e6), name="seconds"),
    seconds_p99=Column("99 %, µs", scaled(1e6)),
    start_skew_seconds=Column("start skew, µs", scaled(1e6)),
    algbw_gb_per_s=Column("algbw, GB/s", significant),
    busbw_gb_per_s=Column(
        "busbw, GB/s", significant, flags={"wrong result": lambda row: not row.correct}
    ),
    epoch=Column("epochs", whole),
    train_loss=Column("training loss", text=lambda row: significant(row.train_loss)),
    train_accuracy=Column("training accuracy", percent),
    test_accuracy=Column(
        "test accuracy",
        percent,
        flags={
            "reference": lambda row: getattr(row, "reference", False),
            "as well": lambda row: getattr(row, "as_well", False),
        },
    ),
    epochs=Column("epochs", whole),
    reached=Column(
        "reached",
        text=lambda row: f"{percent(row.target_accuracy)}: {row.reached:.0f} of {row.seeds:.0f}",
        link=cell_id,
    ),
    run_seconds=Column("whole run, s", significant),
    run_cold_seconds=Column("whole run with compilation, s", significant),
    joules=Column("joules", significant),
    quantity=Column("what", words),
    state=Column("state", lambda state: state.replace("sprint", "burst")),
    rate=Column("rate", detail=rates, name="value", text=lambda row: rate(row.value, row.unit)),
    other_seconds=Column("start-up, s", significant, compiling),
    hypothesis=Column("hypothesis", detail=attrgetter("test")),
    verdict=Column(
        "",
        detail=attrgetter("sentence"),
        text=lambda claim: f"{SYMBOLS[claim.verdict]} {claim.verdict}",
    ),
    peak_memory_bytes=Column("peak memory", data),
)
