"""The hypotheses and sentences of the claims: report/claims/*.yaml, templates filled in."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined

from scaling.core import numbers as fmt
from scaling.core.statistics import Difference

FOLDER = Path(__file__).parents[4] / "report/claims"


@dataclass(frozen=True)
class Text:
    """What report/claims/*.yaml says of one kind of claim.

    `hypothesis` is an affirmative sentence, `table` the table with the evidence, `test` the rule
    that the figures are put to. A claim has the sentence of its case, in `sentences`, or else the
    one `sentence`.
    """

    hypothesis: str
    table: str
    test: str
    sentence: str = ""
    sentences: dict[str, str] = field(default_factory=dict)


def batch(cell: Any) -> str:
    """`b = 512`, of a cell or of batch sizes as text."""
    return f"b\u00a0=\u00a0{getattr(cell, 'batch_size', cell)}"


def milliseconds(seconds: float) -> str:
    """`1.24 ms`."""
    return "less than 0.001 ms" if 0 <= seconds < 1e-6 else f"{fmt.significant(1e3 * seconds)} ms"


def shares(low: float, high: float) -> str:
    """A range of shares: `9.4–34 %`; one that reaches below 0 is `≤ 34 %`."""
    ends = [fmt.percent(end).removesuffix(" %") for end in (low, high)]
    if high < 0.0005:
        return "< 0.1 %"
    if low < 0:
        return f"≤ {ends[1]} %"
    return f"{ends[0]} %" if ends[0] == ends[1] else f"{ends[0]}–{ends[1]} %"


def figure(value: float | str) -> str:
    """A count, or a time or ratio that may be infinite: `4`, `0.942`, `∞`."""
    if isinstance(value, str):
        return "∞"
    return f"{value:g}" if value == round(value) else fmt.significant(value)


def difference(found: Difference) -> str:
    """In percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    if math.isnan(found.low):
        return f"{fmt.points(100 * found.mean)} points (no interval)"
    ends = f"{fmt.points(100 * found.low)} to {fmt.points(100 * found.high)}"
    return f"{fmt.points(100 * found.mean)} points (95 % interval {ends})"


def spread(runs: pd.DataFrame, quantity: str) -> str:
    """Mean and range of an accuracy over the runs: `71.2 % (70.9–71.5)`."""
    values = 100 * runs[quantity].dropna()
    if values.empty:
        return "no figure (not finite)"
    ends = f" ({fmt.span(values.min(), values.max())})" if len(values) > 1 else ""
    return f"{fmt.significant(values.mean())} %{ends}"


FILTERS: dict[str, Callable[..., str]] = {
    "batch": batch,
    "cell_name": fmt.cell_name,
    "count": lambda value: f"{value:,}",
    "data": fmt.data,
    "difference": difference,
    "estimate": fmt.estimate,
    "figure": figure,
    "gpus": lambda count: fmt.gpus(int(count)),
    "milliseconds": milliseconds,
    "percent": fmt.percent,
    "plural": lambda count, noun: fmt.plural(int(count), noun),
    "points": lambda share: fmt.points(100 * share),
    "seconds": fmt.seconds,
    "shares": shares,
    "significant": fmt.significant,
    "span": fmt.span,
    "spread": spread,
    "times": fmt.times,
}
ENVIRONMENT = Environment(undefined=StrictUndefined)
ENVIRONMENT.filters |= FILTERS


@cache
def documents() -> list[dict[str, Any]]:
    """The files of `FOLDER` in the order of the questions: `question`, `title` and `claims`."""
    paths = sorted(FOLDER.glob("*.yaml"))
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]


def questions() -> dict[str, str]:
    """The lab's questions by their numbers."""
    return {document["question"]: document["title"] for document in documents()}


@cache
def texts() -> dict[str, Text]:
    """The texts of every kind of claim, by what the ids of its claims begin with."""
    return {
        kind: Text(**text) for document in documents() for kind, text in document["claims"].items()
    }


def sentence(kind: str, case: str, facts: dict[str, Any]) -> str:
    """The sentence of a claim, filled with `facts`.

    Raises jinja2.UndefinedError where a fact is missing.
    """
    text = texts()[kind]
    template = ENVIRONMENT.from_string(text.sentences.get(case, text.sentence))
    return re.sub("[ \n]+", " ", template.render(facts)).strip()
