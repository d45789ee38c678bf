"""The questions and the sentences of the claims: templates of report/claims/*.yaml, filled in."""

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

    `table` is the table with its evidence, `test` the rule that the figures are put to, `shown`
    the remark on figures of further tables. A claim has the sentence of its case, in `sentences`,
    or else the one `sentence`; `words` has what `word` in it is, by case or verdict. Its `parts`
    are macros by their signatures, say `times(cell)`: pieces that are used more than once.
    """

    table: str
    test: str
    shown: str = ""
    sentence: str = ""
    sentences: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def variants(self) -> set[str]:
        """The cases that have a sentence or a word of their own."""
        return {*self.sentences, *self.words}


def batch(cell: Any) -> str:
    """`b = 512`, of a cell or of batch sizes as text."""
    return f"b\u00a0=\u00a0{getattr(cell, 'batch_size', cell)}"


def milliseconds(seconds: float) -> str:
    """`1.24 ms`."""
    return "less than 0.001 ms" if 0 <= seconds < 1e-6 else f"{fmt.significant(1e3 * seconds)} ms"


def difference(found: Difference) -> str:
    """In percentage points: `−3.10 points (95 % interval −4.00 to −2.20)`."""
    if math.isnan(found.mean):
        return "unknown (a loss is not finite)"
    ends = f"{fmt.points(100 * found.low)} to {fmt.points(100 * found.high)}"
    interval = f"{100 * found.confidence:.4g} % interval {ends}"
    interval = "no interval" if math.isnan(found.low) else interval
    return f"{fmt.points(100 * found.mean)} points ({interval})"


def spread(runs: pd.DataFrame, quantity: str) -> str:
    """Mean and range over the runs: `71.2 % (70.9–71.5)`; losses without the percent sign."""
    values = runs[quantity].dropna()
    if values.empty:
        return "no figure (not finite)"
    factor, unit = (100, " %") if quantity.endswith("accuracy") else (1, "")
    text = f"{fmt.significant(factor * values.mean())}{unit}"
    if len(values) == 1:
        return text
    return f"{text} ({fmt.span(factor * values.min(), factor * values.max())})"


FILTERS: dict[str, Callable[..., str]] = {
    "batch": batch,
    "cell_name": fmt.cell_name,
    "count": lambda value: f"{value:,}",
    "data": fmt.data,
    "difference": difference,
    "estimate": fmt.estimate,
    "gpus": lambda count: fmt.gpus(int(count)),
    "milliseconds": milliseconds,
    "percent": fmt.percent,
    "plural": lambda count, noun: fmt.plural(int(count), noun),
    "points": lambda share: fmt.points(100 * share),
    "seconds": fmt.seconds,
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


def sentence(kind: str, case: str, verdict: str, facts: dict[str, Any]) -> str:
    """The sentence of a claim, filled with `facts`.

    Raises jinja2.UndefinedError where a fact is missing.
    """
    text = texts()[kind]
    word = text.words.get(case, text.words.get(verdict, ""))
    rendered = _template(kind, case).render(**facts, word=word, verdict=verdict)
    return re.sub("[ \n]+", " ", rendered).strip()


@cache
def _template(kind: str, case: str) -> Any:
    text = texts()[kind]
    macros = [f"{{% macro {name} %}}{part}{{% endmacro %}}" for name, part in text.parts.items()]
    return ENVIRONMENT.from_string("".join([*macros, text.sentences.get(case, text.sentence)]))
