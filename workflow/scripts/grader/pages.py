"""The page of published studies: findings by cause, and the index of all studies."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from grader.fields import NOT_STATED
from grader.findings import judge
from grader.study import CIFAR10_TRAIN_IMAGES, PublishedStudy, read_folder
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.report import page
from scaling.report.quantities import whole
from scaling.report.table import Column, Table, View
from scaling.tables.schema import rows_of

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
SHOWN_CELLS = 5
OVERVIEW = ["study", "folder", "link", "points", "cells", *SEVERITIES, "causes"]
FINDINGS = View(
    "findings",
    "Findings",
    pd.DataFrame,
    [
        Column("no.", name="number"),
        Column("severity", SEVERITIES.__getitem__, name="severity"),
        Column("cause", lambda of: fmt.words(of).replace(";", " and "), name="cause"),
    ],
    [
        Column("what happened", name="sentence", detail=attrgetter("advice")),
        Column("cells (GPUs x b)", name="where"),
        Column("explains", name="share"),
    ],
)
INDEX = View(
    "overview",
    "All studies",
    lambda rows: pd.DataFrame(rows, columns=OVERVIEW),
    [Column("study", name="study", link=attrgetter("link"))],
    [
        Column("folder", name="folder"),
        Column("cells", whole, name="cells"),
        *(Column(f"{name}s", whole, name=key) for key, name in SEVERITIES.items()),
        *(Column(name, name=name) for name in ("causes", "points")),
    ],
)


@dataclass(frozen=True)
class Judged:
    """A study of a folder, and the rows of `findings.judge`."""

    study: PublishedStudy
    folder: str
    rows: pd.DataFrame

    @property
    def id(self) -> str:
        """Its place on the page: a folder has no two studies of one name."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def grave(self) -> pd.DataFrame:
        return self.rows[self.rows["severity"] != "info"]

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each finding, with its cells as `where` and the `share` that it explains."""
        found = self.rows.drop_duplicates("number")
        pairs = zip(found["explains"], found["suspects"], strict=True)
        share = [f"{one:.0f} of {all_:.0f}" if all_ > 0 else "" for one, all_ in pairs]
        where = [_where(cells) for _, cells in self.rows.groupby("number")]
        return found.assign(where=where, share=share)

    @property
    def lines(self) -> list[str]:
        """How its table was read, and each finding with what to do."""
        lines = [f"read: {self.study.reading}"] if self.study.reading else []
        for one in rows_of(self.findings):
            said = f"{SEVERITIES[one.severity]}: {one.cause}: {one.sentence}"
            share = f", {one.share} figures" if one.share else ""
            advice = f"; {one.advice}" if one.advice and one.severity != "info" else ""
            lines.append(f"{said} ({one.where}{share}){advice}")
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """How many findings of each severity it has."""
        found = self.findings["severity"].tolist()
        return {severity: found.count(severity) for severity in SEVERITIES}

    @property
    def told(self) -> str:
        """`1 error, 2 warnings, 1 remark`, or `no findings`."""
        parts = [fmt.plural(n, SEVERITIES[severity]) for severity, n in self.counts.items() if n]
        return ", ".join(parts) or "no findings"

    @property
    def table(self) -> Table | None:
        """The table on the page: its findings, if there are any."""
        table = FINDINGS.make(self.findings)
        return table and replace(table, name=f"{self.id}-{table.name}")

    def overview(self, link: str, points: str = "") -> dict[str, Any]:
        """Its row in the index: cells, findings of each severity, causes."""
        return {
            **{"study": self.study.name, "folder": self.folder, "link": link, "points": points},
            **{"cells": len(self.study.rows), **self.counts},
            "causes": ", ".join(self.grave["cause"].unique()).replace("_", " "),
        }


def _where(cells: pd.DataFrame) -> str:
    """The first cells of a finding with what stands there, and how many more it has."""
    told = list[str]()
    for cell in rows_of(cells[:SHOWN_CELLS]):
        found, right = fmt.distinguishable(cell.found, (cell.expected_low + cell.expected_high) / 2)
        values = f": {found}" * (found != "–") + f", expected {right}" * (right != "–")
        told.append(f"{cell.gpus:.0f} x {cell.batch_size:.0f}{values}")
    listed = ("; " if ":" in "".join(told) else ", ").join(told)
    more = f" and {rest} more" if (rest := cell.cells - len(told)) > 0 else ""
    return f"{cell.strategy}: {listed}{more}".removeprefix(f"{NOT_STATED}: ")


def shared(folders: Sequence[Sequence[Judged]]) -> list[str]:
    """What is wrong in several folders, as `2 of 3: the printed speedup is ...`."""
    said = (dict.fromkeys(chain(*(one.grave["sentence"] for one in each))) for each in folders)
    counts = Counter(chain(*said)).most_common()
    return [f"{count} of {len(folders)}: {text}" for text, count in counts if count > 1]


@command_line.script
def main(folders: tuple[Path, ...], template: Path, output: Path) -> None:
    """Write the page of the studies in `folders`: their printed figures, and the errors in them."""
    studies = [
        Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES))
        for folder in folders
        for study in read_folder(folder)
    ]
    about = {
        "title": "Published studies, replayed and audited",
        "table": INDEX.make([one.overview(f"#{one.id}") for one in studies]),
        "shared": shared([[one] for one in studies]),
    }
    files.write_text(output, page.render(template, **about, studies=studies))
