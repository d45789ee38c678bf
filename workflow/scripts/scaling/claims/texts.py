"""Hypotheses and sentences of the claims: templates in report/claims/*.yaml."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from scaling.claims.claim import Part
from scaling.core import numbers as fmt
from scaling.core.statistics import Difference

HELD = {"supported": "held for", "refuted": "not for", "unclear": "unclear for"}
FOLDER = Path(__file__).parents[4] / "report/claims"


@dataclass(frozen=True)
class Text:
    """The entry of one kind of claim in report/claims/*.yaml.

    `hypothesis` is an affirmative sentence, `table` the table with the evidence, `columns` those of
    its columns that claims show for each row, `test` the decision rule. A claim uses its case's
    entry of `sentences`, or else the one `sentence`.
    """

    hypothesis: str
    table: str
    test: str
    columns: str = ""
    sentence: str = ""
    sentences: dict[str, str] = field(default_factory=dict)


def batch(cell: Any) -> str:
    """Format `b = 512`, of a cell or of batch sizes as text."""
    return f"b\u00a0=\u00a0{getattr(cell, 'batch_size', cell)}"


def shares(low: float, high: float | None = None) -> str:
    """Format a share or a range: `9.4–34 %`; with an end below 0 `≤ 34 %`, above 1 `≥ 76 %`."""
    high = low if high is None else high
    ends = dict.fromkeys(fmt.percent(end).removesuffix(" %") for end in (low, high))
    if high < 0.0005:
        return "< 0.1 %"
    if high > 1:
        return f"≥ {fmt.percent(low)}"
    return f"≤ {fmt.percent(high)}" if low < 0 else f"{'–'.join(ends)} %"


def figure(low: float, high: float | None = None) -> str:
    """Format a possibly infinite count, time or ratio, or a range: `4`, `0.942`, `3–∞`."""
    texts = ("∞" if math.isinf(end) else fmt.significant(end) for end in (low, high or low))
    return "–".join(dict.fromkeys(text.removesuffix(".00") for text in texts))


def difference(found: Difference, unit: str = " points", of: str = "95 % interval ") -> str:
    """Format in percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    if math.isnan(found.low):
        return f"{fmt.points(100 * found.mean)}{unit} (no interval)"
    ends = f"{fmt.points(100 * found.low)} to {fmt.points(100 * found.high)}"
    return f"{fmt.points(100 * found.mean)}{unit} ({of}{ends})"


def spread(row: Any, quantity: str = "test_accuracy") -> str:
    """Format mean and range of an accuracy over the seeds: `71.2 % (70.9–71.5)`."""
    mean, low, high = (100 * getattr(row, f"{quantity}{end}") for end in ("", "_min", "_max"))
    ends = f" ({fmt.span(low, high)})" if low < high else ""
    return f"{fmt.significant(mean)} %{ends}"


ENVIRONMENT = Environment(undefined=StrictUndefined)
ENVIRONMENT.filters |= fmt.FILTERS | {
    "batch": batch,
    "count": lambda value: f"{value:,}",
    "difference": difference,
    "figure": figure,
    "plural": lambda count, noun: fmt.plural(int(count), noun),
    "seconds": fmt.seconds,
    "shares": shares,
    "span": fmt.span,
    "spread": spread,
}


@cache
def texts() -> dict[str, Text]:
    """Return the texts of every kind of claim, by the prefix of its claims' ids."""
    paths = sorted(FOLDER.glob("*.yaml"))
    documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]
    return {
        kind: Text(**text) for document in documents for kind, text in document["claims"].items()
    }


def sentence(kind: str, case: str, facts: dict[str, Any]) -> str:
    """Return the sentence of a claim, filled with `facts`; UndefinedError if one is missing."""
    text = texts()[kind]
    template = ENVIRONMENT.from_string(text.sentences.get(case, text.sentence))
    return re.sub("[ \n]+", " ", template.render(facts)).strip()


def where(parts: Sequence[Part]) -> str:
    """Describe in which cells a claim held: ` Held for b = 32, 128; not for 8192.`"""
    cells: dict[str, list[str]] = {verdict: [] for verdict in HELD}
    several = len({part.gpus for part in parts}) > 1
    for part in parts:
        size = str(part.batch_size)
        cells[part.verdict].append(f"{part.gpus} × {size}" if several else size)
    said = [f"{HELD[verdict]} {', '.join(own)}" for verdict, own in cells.items() if own]
    if not several:
        said[0] = said[0].replace(" for ", f" for {batch('')}", 1)
    return f" {'; '.join(said).capitalize()}."
