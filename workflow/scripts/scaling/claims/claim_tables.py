"""The tables that claims are made from, and construction of claims."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scaling.claims import texts
from scaling.claims.claim import Claim, Evidence, Figure, Part, Verdict
from scaling.core.statistics import Difference, judge
from scaling.tables import noise, schema

Judged = tuple[Any, object, object]
"""A cell, whether the claim's test holds in it, and whether it clearly fails."""


@dataclass(frozen=True)
class ClaimTables:
    """Tables by name, as `schema.read` returns them.

    A table that the study lacks is empty with its usual columns, so a claim that finds no rows in
    it has no evidence, whatever the reason.
    """

    study: str
    found: dict[str, pd.DataFrame]

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.found[name] if name in self.found else schema.empty(name)

    def claim(
        self,
        kind: str,
        configuration: str = "",
        *,
        holds: object = False,
        fails: object = False,
        parts: Iterable[Judged] = (),
        ratios: Iterable[noise.Ratio] = (),
        case: str = "",
        **facts: Any,
    ) -> Claim:
        """Return a claim of this kind on a configuration such as `tuned/ddp, 2 GPUs`.

        It is supported if its test `holds`, refuted if it clearly `fails`, else unclear. The same
        applies to each of `parts` (a cell, holds, fails); the verdict is then the one they share,
        or else "in part". The sentence is the one of `case`, if given, filled with the facts; if
        `ratios` leave it unclear, it says how many runs would decide. For the figures see
        `_figures`.
        """
        own = [
            Part(int(cell.gpus), int(cell.batch_size), judge(holds, fails, "unclear"))
            for cell, holds, fails in parts
        ]
        found: set[Verdict] = {part.verdict for part in own} or {judge(holds, fails, "unclear")}
        verdict = next(iter(found)) if len(found) == 1 else "in part"
        text, of = texts.texts()[kind], configuration.partition(",")[0].split(" ")[-1]
        file = schema.TABLES[text.table].path(Path("tables"), self.study).as_posix()
        return Claim(
            id=f"{kind}-{of.replace('/', '-')}" if of else kind,
            question=kind.partition("-")[0],
            kind=kind,
            hypothesis=text.hypothesis,
            configuration=configuration,
            verdict=verdict,
            sentence=texts.sentence(kind, case, {**facts, "verdict": verdict})
            + (texts.where(own) if verdict == "in part" else "")
            + (noise.repeats_needed_note(*ratios) if "unclear" in found else ""),
            evidence=[Evidence(file, _figures(facts, text.columns.split()), text.test)],
            parts=own,
        )

    def of_ratios(
        self, kind: str, about: str, cells: list[Any], ratios: list[noise.Ratio], **facts: Any
    ) -> Claim:
        """Return a claim that a ratio of times is above 1 in each of `cells`."""
        parts = [
            (cell, ratio.low > 1, ratio.high < 1) for cell, ratio in zip(cells, ratios, strict=True)
        ]
        return self.claim(kind, about, parts=parts, ratios=ratios, **facts)

    def missing(self, kind: str, configuration: str = "", **facts: Any) -> Claim:
        """Return a claim that was not measured; its sentence says what to add."""
        made = self.claim(kind, configuration, case="missing", **facts)
        nothing = [replace(evidence, figures={}) for evidence in made.evidence]
        return replace(made, verdict="not measured", evidence=nothing)


def _figures(facts: dict[str, Any], columns: list[str]) -> dict[str, Figure]:
    """Return the figures among the facts in JSON types, with words for non-finite numbers.

    Includes numbers and texts, these columns of table rows, and mean and interval of differences.
    """
    found: dict[str, Any] = {}
    for name, fact in facts.items():
        if isinstance(fact, Difference):
            found |= {f"{name}_{part}": getattr(fact, part) for part in ("mean", "low", "high")}
        elif hasattr(fact, "_fields"):
            found |= {f"{name}_{column}": getattr(fact, column) for column in columns}
        elif isinstance(fact, int | float | str | np.number) and not isinstance(fact, bool):
            found[name] = fact
    words = {"nan": "none", "inf": "infinite"}
    return {
        name: words.get(str(value), value.item() if hasattr(value, "item") else value)
        for name, value in found.items()
        if value != ""
    }


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of ok cells with a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """Return the row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the smallest and the largest value of `column`."""
    return row_at(table, table[column].idxmin()), row_at(table, table[column].idxmax())
