"""The tables that the claims of a study are made from, and the claims made of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims import texts
from scaling.claims.claim import Claim, Evidence, Figure, Verdict
from scaling.core.errors import UserError
from scaling.tables import noise, schema


@dataclass(frozen=True)
class ClaimTables:
    """Tables by name, as `schema.read` returns them.

    A table that the study does not have is an empty one with the columns it would have, so that
    a claim that finds no rows in it has no evidence, for whatever reason.
    """

    study: str
    found: dict[str, pd.DataFrame]

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.found.get(name, schema.frame(name))

    def file(self, name: str) -> str:
        """Where the table `name` lies, or would lie, relative to results/."""
        return schema.TABLES[name].path(Path("tables"), self.study).as_posix()

    def claim(
        self,
        kind: str,
        figures: dict[str, Any],
        configuration: str = "",
        *,
        holds: object = False,
        fails: object = False,
        case: str = "",
        shown: dict[str, dict[str, Figure]] | None = None,
        **facts: Any,
    ) -> Claim:
        """A claim of this kind on a configuration, say on `tuned/ddp`.

        It is supported if its test `holds`, refuted if it clearly `fails`, unclear otherwise. The
        sentence is that of `case`, by default of the verdict, filled with the figures and facts.
        `shown` are figures of further tables, which are not tested.
        """
        if holds and fails:
            raise ValueError(f"the test of {kind} cannot both hold and fail")
        verdict: Verdict = "supported" if holds else "refuted" if fails else "unclear"
        known = {**figures, **facts, "verdict": verdict}
        made = self._make(kind, configuration, verdict, case or verdict, figures, known)
        made.evidence.extend(
            Evidence(self.file(table), others, "Shown, not tested.")
            for table, others in (shown or {}).items()
        )
        return made

    def missing(
        self, kind: str, configuration: str = "", case: str = "missing", **facts: Any
    ) -> Claim:
        """A claim that was not measured; the sentence of `case` says what to add."""
        return self._make(kind, configuration, "not measured", case, {}, facts)

    def _make(
        self,
        kind: str,
        configuration: str,
        verdict: Verdict,
        case: str,
        figures: dict[str, Any],
        known: dict[str, Any],
    ) -> Claim:
        text, of = texts.texts()[kind], configuration.partition(",")[0].split(" ")[-1]
        return Claim(
            id=f"{kind}-{of.replace('/', '-')}" if of else kind,
            question=kind.partition("-")[0],
            kind=kind,
            hypothesis=text.hypothesis,
            configuration=configuration,
            verdict=verdict,
            sentence=texts.sentence(kind, case, known),
            evidence=[Evidence(self.file(text.table), figures, text.test)],
        )


def read(study: str, paths: Iterable[Path]) -> ClaimTables:
    """The tables at `paths`, named by their files. Raises UserError for a name that is none."""
    found = {}
    for path in paths:
        if path.stem not in schema.TABLES:
            known = ", ".join(schema.TABLES)
            raise UserError(f"{path} is no table of a study; those are {known}")
        found[path.stem] = schema.read(path.stem, path)
    return ClaimTables(study, found)


def measured(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of cells that are ok and have a value in `column`."""
    return table[(table["status"] == "ok") & table[column].notna()]


def row_at(table: pd.DataFrame, index: Any) -> Any:
    """The row of `table` with this label."""
    return next(table.loc[[index]].itertuples())


def extremes(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """The rows with the least and the largest value of `column`."""
    return row_at(table, table[column].idxmin()), row_at(table, table[column].idxmax())


def disjoint(one: Any, other: Any, column: str) -> bool:
    """Whether two cells' times, each measured several times, have disjoint ranges."""
    ranges = [getattr(cell, f"{column}_{end}") for cell in (one, other) for end in ("min", "max")]
    return min(one.count, other.count) > 1 and not noise.ranges_overlap(*ranges)


def columns_of(columns: Iterable[str], **rows: Any) -> dict[str, Any]:
    """These columns of each named row as figures: `smallest_batch_size`, …"""
    columns = list(columns)
    return {
        f"{name}_{column}": getattr(row, column) for name, row in rows.items() for column in columns
    }
