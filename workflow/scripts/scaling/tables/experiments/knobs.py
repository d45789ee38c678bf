"""What the knobs of DistributedDataParallel save here, and on which links they would."""

import math
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd

from scaling.core.settling import drift
from scaling.tables import noise, schema
from scaling.tables.limits import GB, ring_factor

BACKWARD = 2 / 3
"""The backward pass, of a step's compute: two of its three products of matrices."""


class Step(NamedTuple):
    """Seconds of a step by the link: `fixed` + max(0, `sent` bytes / bandwidth - `hidden`)."""

    fixed: float
    sent: float
    hidden: float

    def seconds(self, per_byte: float) -> float:
        """Seconds where the link takes `per_byte` of them for a byte."""
        return self.fixed + max(0.0, self.sent * per_byte - self.hidden)


def pays_below(own: Step, plain: Step) -> float:
    """The bandwidth in bytes/s below which `own` takes less time than `plain`.

    What it saves is the same on all links that hide both exchanges, and a line on those slower than
    the two links at which each begins to show, as between these. Infinite where it saves on all
    links, NaN where it sends no fewer bytes.
    """
    if own.sent >= plain.sent:
        return math.nan
    near, far = sorted(step.hidden / step.sent for step in (own, plain))
    always, at_far = plain.fixed - own.fixed, plain.seconds(far) - own.seconds(far)
    if at_far <= 0:
        return 1 / (far - at_far / (plain.sent - own.sent))
    return 1 / (near + (far - near) * always / (always - at_far)) if always <= 0 else math.inf


def knobs(documents: list[dict[str, Any]], fits: pd.DataFrame) -> pd.DataFrame:
    """The table of knobs: a row for each cell and knob, of steps of one batch on each GPU.

    Seconds are medians over the repeats, of the slowest rank; `plain_…` are of the plain steps in
    turn with them, `drift` is theirs. `bytes_sent` of gradients are handed to all-reduces. A knob
    `saves` or `costs` unless that is noise: by `noise.ratio`, or no more than what the first row,
    plain steps beside plain ones, differs by. `pays_below_gb_per_s` and `link_gb_per_s`, that of
    the sweep in `fits`, are of a ring's bus, and empty without a sweep. By this model: an exchange
    hides behind the backward pass of the last batch before it, `BACKWARD` of the steps without
    exchange; what else steps take on this link they take on any; noise counts as equal.
    """
    links = fits.set_index("gpus")["asymptotic_busbw_gb_per_s"]
    found: list[dict[str, Any]] = []
    for document in documents:
        cell = {key: document["cell"][key] for key in ("gpus", "batch_size")}
        cell["link_gb_per_s"] = links.get(cell["gpus"], math.nan)
        first, *_ = rows = [cell | row for row in document["rows"]]
        found += [row | _compared(row, first) for row in rows]
    return schema.frame("knobs", found)


def _times(row: dict[str, Any], side: str) -> SimpleNamespace:
    with_it, alone = (
        [max(turn[name]) / row["iterations"] for turn in row[side]]
        for name in ("seconds", "seconds_without_exchange")
    )
    ends = {"seconds": median(with_it), "seconds_min": min(with_it), "seconds_max": max(with_it)}
    return SimpleNamespace(**ends, seconds_without_exchange=median(alone), count=len(with_it))


def _step(row: dict[str, Any], times: SimpleNamespace) -> Step:
    sent = sum(each["bytes"] for each in row["messages"] if each["phase"] == "backward")
    hidden = BACKWARD * times.seconds_without_exchange / row["batches"]
    step = Step(0.0, ring_factor(row["gpus"]) * sent / row["batches"], hidden)
    return step._replace(fixed=times.seconds - step.seconds(1 / (row["link_gb_per_s"] * GB)))


def _compared(row: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    (own, plain), two_plain = (
        [_times(each, side) for side in ("own", "plain")] for each in (row, first)
    )
    share, alike = (1 - one.seconds / other.seconds for one, other in ((own, plain), two_plain))
    told = noise.ratio([own], [plain], "seconds")
    verdict = "saves" if told.high < 1 else "costs" if told.low > 1 else "within noise"
    step, plain_step = _step(row, own), _step(first, plain)
    if abs(share) <= abs(alike):
        verdict = "within noise"
    if verdict == "within noise":
        step = step._replace(fixed=plain_step.fixed)
    known = not math.isnan(row["link_gb_per_s"])
    return {
        **vars(own),
        **{f"plain_{name}": value for name, value in vars(plain).items()},
        "bytes_sent": round(step.sent / ring_factor(row["gpus"])),
        "drift": drift([max(turn["seconds"]) for turn in row["plain"]])[0],
        "saved_seconds": plain.seconds - own.seconds,
        "saved_share": share,
        "verdict": verdict,
        "basis": told.basis,
        "pays_below_gb_per_s": pays_below(step, plain_step) / GB if known else math.nan,
    }
