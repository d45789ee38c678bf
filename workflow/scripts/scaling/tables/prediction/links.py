"""What joins GPUs, within a node and between nodes, and what a step's all-reduce costs over it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from scaling.registry.strategy import Strategy
from scaling.tables.limits import GB, ring_factor

AllReduce = Callable[[int], float]
"""From a number of GPUs to the cost of one step's all-reduce; its unit is the caller's."""


@dataclass(frozen=True)
class Link:
    """Seconds of each of a ring's 2(N-1) steps, and for each byte sent; `source` names it."""

    latency: float
    seconds_per_byte: float
    source: str


UNKNOWN = Link(0.0, 1.0, "no link measured")
Links = Callable[[int], Link]
"""From a number of GPUs to the link that a ring of them is as fast as."""


def links(fits: pd.DataFrame, gpus_per_node: int, between_nodes_gb_per_s: float | None) -> Links:
    """The links by the lines through measured all-reduces (`limits.fit`), each of its own sweeps.

    Without a sweep over several nodes their link has the bandwidth assumed, in GB/s of a ring's
    bus, and the latency within a node; without an assumption it is the one within a node.
    """
    known = fits.dropna(subset=["latency_seconds", "seconds_per_byte"])
    inside = known["gpus"] <= gpus_per_node
    within = _fitted(known[inside], "link within a node measured")
    between = _fitted(known[~inside], "link between nodes measured")
    if between is UNKNOWN and within is not UNKNOWN:
        seconds, source = within.seconds_per_byte, "link between nodes neither measured nor assumed"
        if between_nodes_gb_per_s:
            seconds = max(seconds, 1 / (between_nodes_gb_per_s * GB))
            source = f"link between nodes assumed, {between_nodes_gb_per_s:g} GB/s"
        between = Link(within.latency, seconds, source)
    near = between if within is UNKNOWN else within
    return lambda gpus: near if gpus <= gpus_per_node else between


def _fitted(fits: pd.DataFrame, source: str) -> Link:
    if fits.empty:
        return UNKNOWN
    # The best single factor of y = factor · x in relative error is the mean of y / x.
    latency = max(0.0, float((fits["latency_seconds"] / (2 * (fits["gpus"] - 1))).mean()))
    return Link(
        latency, float((fits["seconds_per_byte"] / ring_factor(fits["gpus"])).mean()), source
    )


def allreduce(strategy: Strategy, link: Links, gradient_bytes: float) -> tuple[AllReduce, str]:
    """A(N) of a strategy, and the unit that this leaves for the model's `communication`.

    From a sweep, in seconds: latency · 2(N-1) + 2(N-1)/N · K / bandwidth, a ring's steps and bytes;
    `communication` is then the share of it that the epoch shows. Else as many times as K passes
    over the busiest link, or in one process, which serves its GPUs in turn, goes to another GPU and
    back; longer over a slower link. `communication` is the seconds of one.
    """

    def seconds(gpus: int) -> float:
        own, sent = link(gpus), ring_factor(gpus) * gradient_bytes
        return own.latency * 2 * (gpus - 1) + sent * own.seconds_per_byte

    def travels(gpus: int) -> float:
        slower = link(gpus).seconds_per_byte / link(1).seconds_per_byte
        one_process = strategy.processes(gpus) == 1
        return slower * (2 * (gpus - 1) if one_process else strategy.busiest_bytes(gpus, 1.0))

    swept = link(1) is not UNKNOWN and not math.isnan(gradient_bytes)
    if strategy.all_reduces and swept:
        return seconds, "of the all-reduce"
    return travels, "s of travel"
