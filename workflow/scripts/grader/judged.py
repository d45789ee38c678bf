"""What a page says of a published study: findings by cause, and its figures with the wrong ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pandas as pd

from grader.mistakes import MISTAKES
from grader.study import PRINTED, PublishedStudy
from grader.views import OF_A_STUDY, OF_ALL, SEVERITIES
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.table import Table, tables
from scaling.tables.schema import rows_of

SHOWN_ROWS = 200
"""Of a study: of one with more only the cells with an error or a warning are shown."""
SHOWN_CELLS = 12
NETWORKS = ["biases", "seed", "stage", "mistake", "accuracy_percent"]
"""Of studies/published/lab_networks.csv: a row for each training and what was made of it."""
SOUND = "no mistake"
SHARED = ["cause", "quantity"]
OVERVIEW = ["study", "folder", "link", "points", "cells", *SEVERITIES, "causes"]


@dataclass(frozen=True)
class Judged:
    """A study of a folder, the rows of `findings.judge`, our quantized networks' accuracies."""

    study: PublishedStudy
    folder: str
    rows: pd.DataFrame
    ours: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NETWORKS))

    @property
    def id(self) -> str:
        """Its place on the page: a folder has no two studies of one name."""
        return quote(f"{self.folder}/{self.study.name}")

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each finding: what happened, in which cells, how many figures it explains."""
        rows = []
        for _, same in self.rows.groupby("number"):
            one = same.iloc[0]
            found, expected = _figures(one)
            first = same.dropna(subset=["gpus", "batch_size"])[:SHOWN_CELLS]
            more = f" and {rest} more" if (rest := one["cells"] - len(first)) > 0 else ""
            places = [f"{n:.0f} x {b:.0f}" for n, b in first[["gpus", "batch_size"]].to_numpy()]
            pairs = zip(places, map(_figures, first.itertuples()), strict=True)
            values = [
                place
                + ("" if this == "–" else f": {this}" + f", expected {right}" * (right != "–"))
                for place, (this, right) in pairs
            ]
            explains = f"{one['explains']:.0f} of {one['suspects']:.0f}"
            told = {
                **{"found": found, "expected": expected, "name": SEVERITIES[one["severity"]]},
                "places": ", ".join(places) + more,
                "values": ("; " if found != "–" else ", ").join(values) + more,
                "explains": explains if one["suspects"] > 0 else "",
            }
            rows.append({**one, **told})
        return pd.DataFrame(rows, columns=[*self.rows, "places", "values", "expected", "name"])

    @property
    def counts(self) -> str:
        """`1 error, 2 warnings, 1 remark`, or `no findings`."""
        found = self.rows.drop_duplicates("number")["severity"].value_counts()
        parts = [fmt.plural(found[key], name) for key, name in SEVERITIES.items() if key in found]
        return ", ".join(parts) or "no findings"

    @property
    def facts(self) -> list[tuple[str, str]]:
        return [("Folder", self.folder), *source_facts(self.study), ("Audit", self.counts)]

    @property
    def shown(self) -> list[Table]:
        """The tables on the page."""
        frames = {
            "causes": self.findings,
            "figures": self.figures,
            "printed_quantization": beside(self.study.quantization, self.ours),
            "printed_accuracy": self.study.accuracy,
        }
        made = tables(OF_A_STUDY, frames)
        return [replace(table, name=f"{self.id}-{table.name}") for table in made]

    @property
    def figures(self) -> pd.DataFrame:
        """A row for each cell: times and figures as printed, and the findings each is one of."""
        columns, cell = ["epoch_seconds", "epoch_seconds_without_loading", *PRINTED], CELL_KEYS[1:]
        grave = self.rows[self.rows["severity"] != "info"]
        found = {key: list(rows_of(same)) for key, same in grave.groupby(cell)}
        rows = list[dict[Any, Any]]()
        for row in self.study.rows.to_dict("records"):
            here = found.get(tuple(row[key] for key in cell), [])
            if len(self.study.rows) > SHOWN_ROWS and (not here or len(rows) == SHOWN_ROWS):
                continue
            for column in columns:
                value = row[PRINTED.get(column, column)]
                row[column] = "" if value is None or pd.isna(value) else f"{value:f}"
            for column in (*columns, "cell"):
                its = [one for one in here if column in (one.quantity, "cell")]
                its = [one for one in its if column != "cell" or one.quantity not in columns]
                row[f"{column}_marks"] = ", ".join(_mark(one, row.get(column, "")) for one in its)
            rows.append(row)
        return pd.DataFrame(rows)

    def overview(self, link: str, points: str = "") -> dict[str, Any]:
        """Its row in the index: cells, findings of each severity, causes."""
        grave = self.rows[self.rows["severity"] != "info"]
        counts = self.rows.groupby("severity")["number"].nunique()
        return {
            **{"study": self.study.name, "folder": self.folder, "link": link, "points": points},
            **{"cells": len(self.study.rows)},
            **{severity: counts.get(severity, 0) for severity in SEVERITIES},
            "causes": ", ".join(grave["cause"].str.replace("_", " ").unique()),
        }


def index(rows: Iterable[dict[str, Any]], studies: Sequence[Judged]) -> list[Table]:
    """The tables of all studies: their `rows`, and each cause with the studies it occurs in."""
    every = [one.rows.assign(study=one.study.name)[["cause", "study"]] for one in studies]
    found = pd.concat([pd.DataFrame(columns=["cause", "study"]), *every])
    found = found.assign(cause=found["cause"].str.split(";")).explode("cause").drop_duplicates()
    occurring = [
        {
            **{"cause": name, "severity": SEVERITIES[MISTAKES[name].severity]},
            **{"sentence": MISTAKES[name].sentence.replace("{rule}", "…")},
            **{"where": ", ".join(same["study"][:SHOWN_CELLS]), "studies": len(same)},
        }
        for name, same in found.groupby("cause")
    ]
    frames = {"overview": pd.DataFrame(rows, columns=OVERVIEW), "mistakes": pd.DataFrame(occurring)}
    return tables(OF_ALL, frames)


def shared(submissions: Sequence[Sequence[Judged]]) -> list[str]:
    """`2 of 3: the printed … counts …` for each error or warning that several submissions have."""
    every = [one.rows.assign(of=i) for i, studies in enumerate(submissions) for one in studies]
    found = pd.concat(every) if every else pd.DataFrame(columns=["severity", *SHARED, "of"])
    grave = found[found["severity"] != "info"].drop_duplicates([*SHARED, "of"])
    groups = sorted((same for _, same in grave.groupby(SHARED)), key=len, reverse=True)
    return [
        f"{len(same)} of {len(submissions)}: {same['sentence'].iloc[0]}"
        for same in groups
        if len(same) > 1
    ]


def _mark(finding: Any, printed: str) -> str:
    """The number of a finding, and what is expected if it is the printed figure that it found."""
    same = printed and abs(float(printed) - finding.found) < 1e-9
    right = f"expected {_figures(finding)[1]}, " if same and pd.notna(finding.expected_low) else ""
    return f"{right}finding {finding.number}"


def _figures(finding: Any) -> tuple[str, str]:
    """What stands in the cell of a finding's row, and what is expected there."""
    expected = (finding.expected_low + finding.expected_high) / 2
    return fmt.distinguishable(finding.found, expected)


def source_facts(source: PublishedStudy) -> list[tuple[str, str]]:
    """(what, value) pairs on what a study says of itself."""
    parameters = "parameters not stated"
    if source.parameters is not None:
        size = fmt.data(source.gradient_bytes)
        parameters = f"{source.parameters:,} parameters, so {size} of float32 gradients"
    return [
        ("Hardware", source.description.hardware),
        ("Strategy", ", ".join(source.strategies)),
        ("Model", f"{source.model}, {parameters}"),
        ("Units", source.description.units),
    ]


def beside(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return each printed accuracy with our variants of its stage whose `ranges` have it.

    Else with the nearest, and the points `beyond` its range.
    """
    figures = zip(printed["accuracy_percent"].astype(float), printed["stage"], strict=True)
    found = [_alike(figure, ours[ours["stage"] == stage]) for figure, stage in figures]
    columns = ["variants", "ranges", "beyond"]
    return printed.join(pd.DataFrame(found, columns=columns, index=printed.index))


def _alike(printed: float, ours: pd.DataFrame) -> tuple[str, str, str]:
    ends = ours.groupby("mistake")["accuracy_percent"].agg(["min", "max"])
    off = printed - pd.Series(printed, ends.index).clip(ends["min"], ends["max"])
    nearest = ends[off.abs() == off.abs().min()].sort_index(key=lambda names: names != SOUND)
    ranges = [f"{low:.2f}–{high:.2f}" for low, high in nearest.itertuples(index=False)]
    points = [fmt.points(float(off[name])) for name in nearest.index[:1] if off[name]]
    return "; ".join(nearest.index), "; ".join(ranges), "".join(points)
