"""The quantities of a study's page: the heading and the format of each, in tables and text."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from scaling.core.numbers import data, gpus, percent, rate, significant, times, words
from scaling.report.table import Column, Figure, OfFrame, OfRow, View


def span(
    name: str, write: Callable[[float], str] = significant, ends: tuple[str, str] = ("min", "max")
) -> OfRow:
    """Return a function that formats a row's `…_min` and `…_max`, such as `0.341–0.352`."""

    def text(row: Any) -> str:
        low, high = (getattr(row, f"{name}_{end}", math.nan) for end in ends)
        known = not (pd.isna(low) or pd.isna(high) or low == high)
        return f"{write(low).removesuffix(' %')}–{write(high)}" if known else ""

    return text


def interval(name: str, write: Callable[[float], str] = significant, scope: str = "scope") -> OfRow:
    """Return a function that formats a row's `…_low` and `…_high`, and its scope if it has one."""

    def text(row: Any) -> str:
        low, high = (getattr(row, f"{name}_{end}", math.nan) for end in ("low", "high"))
        ends = "" if pd.isna(low) or pd.isna(high) else f"{write(low).rstrip('×')}–{write(high)}"
        return ", ".join(filter(None, [ends, getattr(row, scope, "") or ""]))

    return text


def on(row: Any) -> str:
    """Format recipe, strategy and GPUs of a row: `tuned/ddp, 2 GPUs`."""
    return f"{row.recipe}/{row.strategy}".removesuffix("/") + f", {gpus(row.gpus)}"


def below(row: Any) -> str:
    """Format seconds of communication, or `below` the upper end if the interval starts below 0."""
    low, high = row.exchange_seconds_low, row.exchange_seconds_high
    return f"below {significant(high, 2)}" if low < 0 else significant(row.exchange_seconds, 2)


def ends(row: Any) -> str:
    """Format the interval of communication, s; "" if it starts below 0 or is unknown."""
    of = interval("exchange_seconds", partial(significant, digits=2))
    return of(row) if row.exchange_seconds_low >= 0 else ""


def scaled(factor: float) -> Callable[[float], str]:
    """Return a function that formats `factor` times a value with three significant digits."""
    return lambda value: significant(factor * value)


def fixed(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


whole, count = "{:.0f}".format, "{:,.0f}".format
NOISE = {"unclear": lambda row: row.unclear is True}
JUDGED: dict[str, OfRow] = {
    "unclear": lambda row: getattr(row, "verdict", "") == "unclear",
    "same": lambda row: getattr(row, "verdict", "") == "same",
}
"""Flags of a ratio whose interval does not exclude 1."""
QUANTITIES: dict[str, Column] = {}
"""Columns by quantity, which is also the column's name in a frame unless it has a `name`."""

PARTS: dict[str, list[View]] = defaultdict(list)
"""The tables of each part of the page, in order."""


def define(**columns: Column) -> None:
    """Add columns to `QUANTITIES` under their keywords, which must be new."""
    assert QUANTITIES.keys().isdisjoint(columns), columns
    for name, column in columns.items():
        quantity = column.quantity or name
        QUANTITIES[name] = replace(column, name=column.name or name, quantity=quantity)


def named(names: str) -> list[Column]:
    """Return the columns of the quantities in `names`; the name heads an undefined quantity."""
    return [QUANTITIES.get(name, Column(words(name), name=name)) for name in names.split()]


def printed(row: Any, quantity: str, write: Callable[[Any], str] | None = None) -> Figure:
    """Return a quantity of a row for a sentence, formatted by `write` or else as in tables."""
    (column,) = named(quantity)
    return replace(column, write=write or column.write).cell(row)


def view(
    part: str,
    title: str,
    keys: str,
    columns: str,
    across: str = "",
    heading: Callable[[Any], str] = str,
    note: OfFrame = lambda frame: "",
    **rows: Callable[..., pd.DataFrame],
) -> Any:
    """Add a `View` of each `name=rows` to `part`; without any, return a decorator of `rows`."""

    def made(rows: Callable[..., pd.DataFrame], name: str = "") -> View:
        name = (name or rows.__name__).replace("_", "-")
        found = View(name, title, rows, named(keys), named(columns), across, heading, note)
        PARTS[part].append(found)
        return found

    return next((made(of, name) for name, of in rows.items()), made)


define(
    configuration=Column(
        "configuration",
        text=lambda row: f"{row.recipe}/{row.strategy}".removesuffix("/"),
        name="recipe",
    ),
    configuration_on=Column("images per GPU", text=on, name="recipe"),
    gpus=Column("GPUs", whole, flags={"extrapolated": lambda row: getattr(row, "guess", False)}),
    batch_size=Column("b", whole),
    epoch_seconds=Column("epoch, s", significant, interval("epoch_seconds", scope="")),
    training_seconds=Column("time, s", significant, interval("training_seconds", scope="")),
    speedup=Column("speedup", times, interval("speedup"), flags=JUDGED),
    training_speedup=Column(
        "speedup", times, interval("training_speedup", scope=""), name="training_speedup"
    ),
    fixed_global_batch_speedup=Column(
        "strong speedup", times, interval("fixed_global_batch_speedup", scope="")
    ),
    efficiency=Column("efficiency", percent),
    job_seconds=Column("job with start-up, s", significant),
    break_even=Column("pays from, epochs", count),
    computing_seconds=Column("comp.", significant),
    exchange_seconds=Column("comm.", detail=ends, text=below),
    machines_of=Column("on machine", str),
    gpu_seconds=Column("GPU-seconds", significant),
    epoch_joules=Column("kJ", scaled(1e-3)),
    money_per_epoch=Column("money an epoch", significant),
    compute_seconds=Column("without exchange", significant),
    delay_seconds=Column("delay by the exchange", significant, interval("delay_seconds")),
    exposed_seconds=Column("exposed messages", significant, interval("exposed_seconds")),
    messages_seconds=Column("all messages", significant, interval("messages_seconds")),
    flops_per_second_per_gpu=Column("TFLOP/s a GPU", scaled(1e-12)),
    utilization=Column("arithmetic at peak", percent),
    slower_share=Column("other kernel time", percent),
    idle_share=Column("GPU idle", percent),
    unknown_share=Column("not traced", percent),
    idle_besides_share=Column("GPU idle besides", percent),
    exposed_share=Column("exposed messages", percent),
    waiting_share=Column("waits for ranks", percent),
    loading_share=Column("data wait", percent),
    power_capped_share=Column("at the power limit", percent),
    joules_per_image=Column("J an image", significant, interval("joules_per_image", scope="")),
    images_per_second=Column("images/s", significant),
    bandwidth_gb_per_s=Column("GB/s", significant),
    link_utilization=Column("of all-reduces alone", percent, name="utilization"),
    iterations=Column("steps", count),
    message_bytes=Column("message", data),
    message_kind=Column("what", words, name="kind"),
    message_seconds=Column("µs", scaled(1e6), span("seconds", scaled(1e6)), name="seconds"),
    seconds_p99=Column("99 %, µs", scaled(1e6)),
    start_skew_seconds=Column("start skew, µs", scaled(1e6)),
    algbw_gb_per_s=Column("algbw, GB/s", significant),
    busbw_gb_per_s=Column(
        "busbw, GB/s", significant, flags={"wrong result": lambda row: not row.correct}
    ),
    epoch=Column("epochs", whole),
    train_loss=Column("training loss", significant),
    train_accuracy=Column("training accuracy", percent, span("train_accuracy", percent)),
    test_accuracy=Column(
        "test accuracy",
        percent,
        span("test_accuracy", percent),
        flags={"reference": attrgetter("reference"), "as well": attrgetter("as_well")},
    ),
    trained_on=Column("GPUs × b", text="{0.gpus} × {0.batch_size}".format, name="gpus"),
    trained_epochs=Column("epochs", whole, name="epochs"),
    reached=Column("reached", text="{0.reached} of {0.seeds}".format),
    trained_accuracy=Column(
        "test accuracy",
        percent,
        span("test_accuracy", percent),
        "test_accuracy",
        "trained_accuracy",
    ),
    to_accuracy_seconds=Column(
        "training, s", significant, span("training_seconds"), "training_seconds", "trained_seconds"
    ),
    trained_run_seconds=Column("with start-up, s", significant, span("run_seconds"), "run_seconds"),
    training_joules=Column("joules", significant, span("joules"), "joules"),
    to_accuracy_speedup=Column("speedup", times, interval("speedup"), "speedup", flags=JUDGED),
    quantity=Column("what", words),
    rate=Column(
        "rate",
        detail=lambda row: span("value", scaled(1e-12 if row.value >= 1e12 else 1e-9))(row),
        name="value",
        text=lambda row: rate(row.value, row.unit),
    ),
    startup_seconds=Column("start-up, s", significant),
    peak_memory_bytes=Column(
        "peak memory",
        data,
        lambda row: (
            ""
            if pd.isna(row.memory_capacity_bytes)
            else f"{percent(row.peak_memory_bytes / row.memory_capacity_bytes)} of the GPU’s"
        ),
    ),
    found=Column("found", significant),
    expected=Column("expected", significant),
)
