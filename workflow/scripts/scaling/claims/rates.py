"""Question 4.2: how the best learning rate of plain SGD grows with the global batch."""

import math
from dataclasses import dataclass
from typing import Any

from scaling.claims.chosen_runs import reference_runs
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.tables.experiments.best_remedy import base_rate, plain_sweep

ID, QUESTION = "Q4.2-best-rate", "Q4.2"
GROWS = (
    "Plain SGD, the swept rate with the least training loss at each global batch. Exponent of a "
    "power law through the rates of the reference batch and of the largest global batch whose best "
    "rate is not at an end of its sweep (one that is bounds it from one side alone and is left "
    "out, as is a batch with a diverged seed). The best of all rates is taken to lie within half a "
    "step of the sweep, in its logarithm, on each side of the best that was tried, which gives the "
    "exponent a range. The sweep is of one seed: its noise is not in that range. Supported: the "
    "whole range is below 1; refuted: all of it is at or above 1; undecided: otherwise."
)


@dataclass(frozen=True)
class _Best:
    """The best swept rate at a global batch, and how far half a step of the sweep reaches."""

    batch: int
    rate: float
    low: float
    high: float


def claims(tables: ClaimTables) -> list[Claim]:
    """That it grows more slowly than the batch; linear scaling lets it grow alike."""
    file, reference = tables.file("convergence"), reference_runs(tables)
    size = int(reference.iloc[0]["global_batch"])
    inside, left_out = _best_rates(tables)
    ends = f" Left out, as the best rate is at an end of its sweep: {'; '.join(left_out)}."
    ends = ends if left_out else ""
    if len(inside) < 2 or inside[0].batch != size:
        lacks = (
            f"How the best rate grows with the global batch cannot be said: it is not known at "
            f"{size} and at a larger one, from sweeps of plain SGD with the best inside.{ends}"
        )
        return [undecided(ID, QUESTION, lacks, file, GROWS)]
    small, large = inside[0], inside[-1]
    exponent = _exponent(small, large, small.rate, large.rate)
    low = _exponent(small, large, small.high, large.low)
    high = _exponent(small, large, small.low, large.high)
    holds, fails = high < 1, low >= 1
    word = (
        "grows more slowly than the batch"
        if holds
        else "grows at least as fast as the batch"
        if fails
        else "may or may not grow more slowly than the batch"
    )
    at_batches = ", ".join(f"{best.rate:.3g} at {best.batch}" for best in inside)
    sentence = (
        f"The best rate of plain SGD {word}: {at_batches}, that is as the batch to the power of "
        f"{exponent:.2f} between {small.batch} and {large.batch} ({low:.2f} to {high:.2f} by the "
        f"steps of the sweep); {_beside(low, high)}.{_base(tables, inside)}{ends}"
    )
    figures: dict[str, Any] = {
        "exponent": exponent,
        "exponent_low": low,
        "exponent_high": high,
        **{f"best_rate_at_{best.batch}": best.rate for best in inside},
    }
    return [Claim(ID, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, GROWS)])]


def _best_rates(tables: ClaimTables) -> tuple[list[_Best], list[str]]:
    """By ascending global batch; in words those at an end."""
    table, runs = tables["remedies"], tables["convergence"]
    inside, ends = [], []
    for batch in sorted(int(batch) for batch in table["global_batch"].unique()):
        row = plain_sweep(table, batch)
        if row is None or row.diverged_seeds:
            continue
        if row.at_edge:
            ends.append(f"{row.learning_rate:.3g} at {batch}")
            continue
        tried = runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == batch)]
        rates = tried["learning_rate"]
        below, above = rates[rates < row.learning_rate].max(), rates[rates > row.learning_rate]
        steps = [math.sqrt(row.learning_rate * next_to) for next_to in (below, above.min())]
        inside.append(_Best(batch, row.learning_rate, *steps))
    return inside, ends


def _exponent(small: _Best, large: _Best, first: float, second: float) -> float:
    return math.log(second / first) / math.log(large.batch / small.batch)


def _beside(low: float, high: float) -> str:
    """How the range of the exponent lies to the two rules in use."""
    rules = [("the square root", "1/2", 0.5), ("linear scaling", "1", 1.0)]
    parts = [
        f"{name} ({written}) is {'in' if low <= value <= high else 'outside'} that range"
        for name, written, value in rules
    ]
    return ", ".join(parts)


def _base(tables: ClaimTables, inside: list[_Best]) -> str:
    """Where the base rate lies beside the best rates, if it is clearly above at the reference."""
    rate = float(base_rate(tables["convergence"])["learning_rate"].max())
    above = [best for best in inside if best.high < rate]
    if math.isnan(rate) or inside[0] not in above:
        return ""
    ratios = ", ".join(f"{rate / best.rate:.3g}× at {best.batch}" for best in above)
    return (
        f" The base rate of {rate:g} is above the best already at {inside[0].batch} ({ratios}): "
        "rules that start from it and raise it begin too high."
    )
