"""What a student and a teacher read of an audit, and the page of published studies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from grader.formulas import FORMULAS
from grader.judge import Finding, Judgement, judge
from grader.study import CIFAR10_TRAIN_IMAGES, Study, read_folder
from grader.verdicts import QUESTION, TITLE
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
COSTS = {"error": 2.0, "warning": 0.5, "info": 0.0}
"""Points that a cause costs, once a study."""
COLUMNS = [
    "study",
    "folder",
    "cells",
    "figures",
    "errors",
    "warnings",
    "remarks",
    "causes",
    "points",
]
SHOWN = 5
"""Cells that stand in the line of a finding."""


@dataclass(frozen=True)
class Judged:
    """A study of a folder or file, its findings, and the points of each question of its form."""

    study: Study
    folder: str
    judgement: Judgement
    form: dict[str, float] | None = None

    @property
    def id(self) -> str:
        """Its place on the page: a folder has no two studies of one name."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def grave(self) -> list[Finding]:
        return [one for one in self.judgement.findings if one.severity != "info"]

    @property
    def counts(self) -> dict[str, int]:
        """How many findings of each severity it has."""
        severities = [one.severity for one in self.judgement.findings]
        return {severity: severities.count(severity) for severity in SEVERITIES}

    @property
    def figures(self) -> str:
        """`9 figures: 7 right, 2 wrong`."""
        of = self.judgement
        numbers = {"right": of.right, "wrong": of.wrong, "not checked": of.open}
        parts = ", ".join(f"{n} {word}" for word, n in numbers.items() if n)
        figures = fmt.plural(sum(numbers.values()), "figure")
        return f"{figures}: {parts}" if parts else "no figures beside the times"

    @property
    def summary(self) -> str:
        """`9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        parts = [fmt.plural(n, SEVERITIES[severity]) for severity, n in self.counts.items() if n]
        return f"{self.figures}; {', '.join(parts) or 'no findings'}"

    @property
    def wrong(self) -> Sequence[tuple[str, ...]]:
        """Each wrong figure: question, quantity, cell, what stands there and what is right."""
        listed = []
        for one in filter(lambda finding: finding.quantity, self.grave):
            about = FORMULAS["quantities"][one.quantity]
            listed += [(about[QUESTION], about[TITLE], *cell) for cell in cells(one)]
        return listed

    @property
    def causes(self) -> Sequence[tuple[str, ...]]:
        """Each finding: severity, cause, what happened and where, and what to do."""
        rows = []
        for one in self.judgement.findings:
            also = ", ".join(f"{fmt.words(name)} {rule}".strip() for name, rule in one.also)
            sentence = one.sentence + f"; also fits: {also}" * bool(also)
            rows.append((SEVERITIES[one.severity], named(one), sentence, where(one), one.advice))
        return rows

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """The points of each question of the form that the audit judges; a cause costs once."""
        cost, seen = dict[str, float](), set[str]()
        for one in self.judgement.findings:
            question = FORMULAS["quantities"].get(one.quantity, ["", "Q2"])[QUESTION]
            paid = COSTS[one.severity] * (not seen >= {*one.names})
            cost[question] = cost.get(question, 0.0) + paid
            seen |= {*one.names}
        questions = {entry[QUESTION] for entry in FORMULAS["quantities"].values()}
        full = {name: points for name, points in (self.form or {}).items() if name in questions}
        left = {name: max(0.0, points - cost.get(name, 0.0)) for name, points in full.items()}
        total = [("all", f"{sum(left.values()):g}", f"{sum(full.values()):g}")] * bool(full)
        return [(name, f"{left[name]:g}", f"{full[name]:g}") for name in full] + total

    @property
    def lines(self) -> list[str]:
        """The lines of a terminal: what was not read, each wrong figure, and each cause."""
        lines = [f"note: {note}" for note in self.study.notes]
        for severity, cause, sentence, place, advice in self.causes:
            action = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){action}")
        return lines

    def overview(self, link: str) -> dict[str, Any]:
        """Its row in the index: cells, figures, findings of each severity, causes, points."""
        causes = ", ".join(dict.fromkeys(map(named, self.grave))) or "–"
        about = (self.study.name, self.folder, len(self.study.rows), self.figures)
        points = self.points[-1][1] if self.points else ""
        return {"link": link, "row": (*about, *self.counts.values(), causes, points)}


def _at(values: Any, i: int) -> float:
    return float(values[0 if len(values) == 1 else i])


def shown(one: Finding) -> Any:
    """The ends of what is expected; nothing below 0, which only noise gives."""
    hidden = (one.expected.high < 0) | ~np.isfinite(one.expected.ends).all(0)
    return np.where(hidden, np.nan, one.expected.ends)


def cells(one: Finding) -> list[tuple[str, str, str]]:
    """The cells of a finding, N x b, with what stands there and what is right, as text."""
    values, (low, high) = one.printed.middle, shown(one)
    listed = []
    for i in one.place.nonzero()[0].tolist():
        pair = fmt.distinguishable(_at(values, i), (_at(low, i) + _at(high, i)) / 2)
        listed.append((f"{one.cells.gpus[i]} x {one.cells.batch[i]}", *pair))
    return listed


def where(one: Finding) -> str:
    """The first cells of a finding with what stands there, and how many more it has."""
    listed = [
        cell + f": {value}" * (value != "–") + f", expected {right}" * (right != "–")
        for cell, value, right in cells(one)[:SHOWN]
    ]
    text = ("; " if ":" in "".join(listed) else ", ").join(listed)
    more = f" and {rest} more" if (rest := int(one.place.sum()) - len(listed)) > 0 else ""
    return f"{one.cells.strategy}: {text}{more}".removeprefix(": ")


def named(one: Finding) -> str:
    """The causes of a finding, in words."""
    return " and ".join(map(fmt.words, one.names))


@command_line.script
def main(folders: tuple[Path, ...], template: Path, output: Path) -> None:
    """Write the page of the studies in `folders`: their printed figures, and the errors in them."""
    studies = []
    for folder in folders:
        each = read_folder(folder)
        if lost := [note for one in each for note in one.lost]:
            raise UserError(f"{folder}/timings.csv, {lost[0]}")
        studies += [
            Judged(one, str(folder), judge(one, each, CIFAR10_TRAIN_IMAGES)) for one in each
        ]
    index = [one.overview(f"#{one.id}") for one in studies]
    title = "Published studies, replayed and audited"
    files.write_text(
        output, page.render(template, title=title, columns=COLUMNS, index=index, studies=studies)
    )
