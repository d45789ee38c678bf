"""What a page says of a published study: findings by cause, and its figures with the wrong ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any
from urllib.parse import quote

import pandas as pd

from grader.definitions import MISTAKES
from grader.study import PRINTED, TIMES, PublishedStudy
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.frames import SEVERITIES, audit_counts
from scaling.report.quantities import whole
from scaling.report.table import Column, Table, View, tables
from scaling.tables.schema import rows_of

SHOWN_ROWS = 200
"""Of a study: of one with more only the cells with an error or a warning are shown."""
SHOWN_CELLS = 12
NETWORKS = ["biases", "seed", "stage", "mistake", "accuracy_percent"]
"""Of studies/published/lab_networks.csv: a row for each training and what was made of it."""
SOUND = "no mistake"
SHARED = ["cause", "quantity"]
OVERVIEW = ["study", "folder", "link", "points", "cells", *SEVERITIES, "causes"]
HEADS = {
    "epoch_seconds": "time, s",
    "epoch_seconds_without_loading": "without loading, s",
    "speedup": "speedup",
    "compute_seconds": "compute, s",
    "communication_seconds": "communication, s",
    "bandwidth_gb_per_s": "GB/s",
    "utilization_percent": "utilization, %",
    "images_per_second": "images/s",
}
CAUSE = Column("cause", fmt.words, name="cause")
WHAT = Column("what happened", name="sentence")
CELL = "{0.strategy}, {0.gpus} × {0.batch_size}".format


def _texts(names: str) -> list[Column]:
    """Return columns that are headed by their names."""
    return [Column(name, name=name) for name in names.split()]


OF_A_STUDY = [
    View(
        "causes",
        "Findings",
        itemgetter("causes"),
        [Column("no.", name="number"), Column("severity", name="name"), CAUSE],
        [
            WHAT,
            Column("cells (GPUs x b)", name="places", text="{0.strategy}: {0.places}".format),
            *_texts("explains found expected"),
        ],
    ),
    View(
        "figures",
        "As printed, with the findings that a figure is one of",
        itemgetter("figures"),
        [Column("GPUs × b", detail=attrgetter("cell_marks"), name="strategy", text=CELL)],
        [
            Column(head, detail=attrgetter(f"{name}_marks"), name=name)
            for name, head in HEADS.items()
        ],
    ),
    View(
        "quantization",
        "Int8 quantization as printed",
        itemgetter("quantization"),
        _texts("stage"),
        [
            Column("accuracy", "{} %".format, name="accuracy_percent"),
            *_texts("where"),
            Column("our variants", lambda of: fmt.words(of).replace("+", " + "), name="variants"),
            Column("their range, %", name="ranges"),
            Column("points beyond", name="beyond"),
        ],
    ),
]
OF_ALL = [
    View(
        "overview",
        "All studies",
        itemgetter("overview"),
        [Column("study", name="study", link=attrgetter("link"))],
        [
            *_texts("folder"),
            Column("cells", whole, name="cells"),
            *(Column(f"{name}s", whole, name=key) for key, name in SEVERITIES.items()),
            *_texts("causes points"),
        ],
    ),
    View(
        "mistakes",
        "Causes, and where they occur",
        itemgetter("mistakes"),
        [CAUSE],
        [Column("gravity", name="severity"), WHAT, *_texts("studies where")],
    ),
]


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

    @property
    def grave(self) -> pd.DataFrame:
        """The errors and warnings among its rows."""
        return self.rows[self.rows["severity"] != "info"]

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each finding: what happened, in which cells, how many figures it explains."""
        rows = []
        for _, same in self.rows.groupby("number"):
            one = same.iloc[0]
            found, expected = _figures(one)
            places, values = list[str](), list[str]()
            for cell in rows_of(same.dropna(subset=["gpus", "batch_size"])[:SHOWN_CELLS]):
                here, right = _figures(cell)
                places.append(f"{cell.gpus:.0f} x {cell.batch_size:.0f}")
                more = f", expected {right}" * (right != "–")
                values.append(places[-1] + f": {here}{more}" * (here != "–"))
            more = f" and {rest} more" if (rest := one["cells"] - len(places)) > 0 else ""
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
        return audit_counts(self.rows.drop_duplicates("number"))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """(what, value) pairs on what a study says of itself."""
        study, parameters = self.study, "parameters not stated"
        if study.parameters is not None:
            size = fmt.data(study.gradient_bytes)
            parameters = f"{study.parameters:,} parameters, so {size} of float32 gradients"
        return [
            ("Folder", self.folder),
            ("Hardware", study.description.hardware),
            ("Strategy", ", ".join(study.strategies)),
            ("Model", f"{study.model}, {parameters}"),
            ("Units", study.description.units),
            ("Audit", self.counts),
        ]

    @property
    def shown(self) -> list[Table]:
        """The tables on the page."""
        frames = {
            "causes": self.findings,
            "figures": self.figures,
            "quantization": alike(self.study.quantization, self.ours),
        }
        made = tables(OF_A_STUDY, frames)
        return [replace(table, name=f"{self.id}-{table.name}") for table in made]

    @property
    def figures(self) -> pd.DataFrame:
        """A row for each cell: times and figures as printed, and the findings each is one of."""
        columns, cell = [*TIMES[:2], *PRINTED], CELL_KEYS[1:]
        found = {key: list(rows_of(same)) for key, same in self.grave.groupby(cell)}
        rows = list[dict[Any, Any]]()
        for row in self.study.rows.to_dict("records"):
            here = found.get(tuple(row[key] for key in cell), [])
            if len(self.study.rows) > SHOWN_ROWS and (not here or len(rows) == SHOWN_ROWS):
                continue
            for column in columns:
                value = row[PRINTED.get(column, column)]
                row[column] = "" if value is None or pd.isna(value) else f"{value:f}"
                its = (_mark(one, row[column]) for one in here if one.quantity == column)
                row[f"{column}_marks"] = ", ".join(its)
            others = (_mark(one, "") for one in here if one.quantity not in columns)
            row["cell_marks"] = ", ".join(others)
            rows.append(row)
        return pd.DataFrame(rows)

    def overview(self, link: str, points: str = "") -> dict[str, Any]:
        """Its row in the index: cells, findings of each severity, causes."""
        counts = self.rows.groupby("severity")["number"].nunique()
        return {
            **{"study": self.study.name, "folder": self.folder, "link": link, "points": points},
            **{"cells": len(self.study.rows)},
            **{severity: counts.get(severity, 0) for severity in SEVERITIES},
            "causes": ", ".join(self.grave["cause"].str.replace("_", " ").unique()),
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
    every = [one.grave.assign(of=i) for i, studies in enumerate(submissions) for one in studies]
    found = pd.concat([pd.DataFrame(columns=[*SHARED, "of"]), *every])
    groups = (same for _, same in found.drop_duplicates([*SHARED, "of"]).groupby(SHARED))
    return [
        f"{len(same)} of {len(submissions)}: {same['sentence'].iloc[0]}"
        for same in sorted(groups, key=len, reverse=True)
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


def alike(printed: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Return each printed accuracy with our variants of its stage whose `ranges` have it.

    Else with the nearest, and the points `beyond` its range.
    """
    found = []
    for figure, stage in zip(
        printed["accuracy_percent"].astype(float), printed["stage"], strict=True
    ):
        variants = ours[ours["stage"] == stage].groupby("mistake")["accuracy_percent"]
        ends = variants.agg(["min", "max"])
        off = figure - pd.Series(figure, ends.index).clip(ends["min"], ends["max"])
        near = ends[off.abs() == off.abs().min()].sort_index(key=lambda names: names != SOUND)
        ranges = [f"{low:.2f}–{high:.2f}" for low, high in near.itertuples(index=False)]
        points = [fmt.points(float(off[name])) for name in near.index[:1] if off[name]]
        found.append(("; ".join(near.index), "; ".join(ranges), "".join(points)))
    columns = ["variants", "ranges", "beyond"]
    return printed.join(pd.DataFrame(found, columns=columns, index=printed.index))
