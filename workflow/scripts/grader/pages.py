"""Write the results of an audit: lines for a terminal, and the page of published studies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from grader.formulas import FORMULAS, QUESTION, TITLE
from grader.judge import Judgement, judge
from grader.slips import Finding
from grader.study import CIFAR10_TRAIN_IMAGES, Study, read_folder
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
COSTS = {"error": 2.0, "warning": 0.5, "info": 0.0}
"""Points subtracted for a cause, once per study, by severity."""
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
"""Largest number of cells in the line of a finding."""


@dataclass(frozen=True)
class Judged:
    """A study, its folder or file, its judgement, and the full points per question of its form."""

    study: Study
    folder: str
    judgement: Judgement
    form: dict[str, float] | None = None

    @property
    def id(self) -> str:
        """Return the HTML id of the study; no two studies of a folder have the same name."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def grave(self) -> list[Finding]:
        return [one for one in self.judgement.findings if one.severity != "info"]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of findings of each severity."""
        severities = [one.severity for one in self.judgement.findings]
        return {severity: severities.count(severity) for severity in SEVERITIES}

    @property
    def figures(self) -> str:
        """Return the verdicts as text: `9 figures: 7 right, 2 wrong`."""
        of = self.judgement
        numbers = {"right": of.right, "wrong": of.wrong, "not checked": of.open}
        parts = ", ".join(f"{n} {word}" for word, n in numbers.items() if n)
        figures = fmt.plural(sum(numbers.values()), "figure")
        return f"{figures}: {parts}" if parts else "no figures beside the times"

    @property
    def summary(self) -> str:
        """Return verdicts and findings: `9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        parts = [fmt.plural(n, SEVERITIES[severity]) for severity, n in self.counts.items() if n]
        return f"{self.figures}; {', '.join(parts) or 'no findings'}"

    @property
    def wrong(self) -> Sequence[tuple[str, ...]]:
        """Return a row per wrong figure: question, quantity, cell, printed value, right value."""
        listed = []
        for one in filter(lambda finding: finding.quantity, self.grave):
            about = FORMULAS["quantities"][one.quantity]
            listed += [(about[QUESTION], about[TITLE], *cell) for cell in cells(one)]
        return listed

    @property
    def causes(self) -> Sequence[tuple[str, ...]]:
        """Return a row per finding: severity, cause, explanation, cells with values, advice."""
        rows = []
        for one in self.judgement.findings:
            sentence, advice = one.words
            severity = SEVERITIES[one.severity]
            rows.append((severity, fmt.words(one.cause), sentence, where(one), advice))
        return rows

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """Return points and full points of each audited question and of all; a cause costs once."""
        cost, seen = dict[str, float](), set[str]()
        for one in self.judgement.findings:
            question = FORMULAS["quantities"].get(one.quantity, ["", "Q2"])[QUESTION]
            paid = COSTS[one.severity] * (one.cause not in seen)
            cost[question] = cost.get(question, 0.0) + paid
            seen.add(one.cause)
        questions = {entry[QUESTION] for entry in FORMULAS["quantities"].values()}
        full = {name: points for name, points in (self.form or {}).items() if name in questions}
        left = {name: max(0.0, points - cost.get(name, 0.0)) for name, points in full.items()}
        total = [("all", f"{sum(left.values()):g}", f"{sum(full.values()):g}")] * bool(full)
        return [(name, f"{left[name]:g}", f"{full[name]:g}") for name in full] + total

    @property
    def lines(self) -> list[str]:
        """Return the lines for a terminal: what was not read, and each finding."""
        lines = [f"note: {note}" for note in self.study.notes]
        for severity, cause, sentence, place, advice in self.causes:
            action = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){action}")
        return lines

    def overview(self, link: str) -> dict[str, Any]:
        """Return the study's link and row (`COLUMNS`) for the index of all studies."""
        causes = ", ".join(dict.fromkeys(fmt.words(one.cause) for one in self.grave)) or "–"
        about = (self.study.name, self.folder, len(self.study.rows), self.figures)
        points = self.points[-1][1] if self.points else ""
        return {"link": link, "row": (*about, *self.counts.values(), causes, points)}


def _at(values: Any, i: int) -> float:
    return float(values[0 if len(values) == 1 else i])


def shown(one: Finding) -> Any:
    """Return the ends of the expected intervals; NaN where negative (noise) or infinite."""
    hidden = (one.expected.high < 0) | ~np.isfinite(one.expected.ends).all(0)
    return np.where(hidden, np.nan, one.expected.ends)


def cells(one: Finding) -> list[tuple[str, str, str]]:
    """Return the cells of a finding as text: N x b, printed value, expected value."""
    values, (low, high) = one.printed.middle, shown(one)
    listed = []
    for i in one.place.nonzero()[0].tolist():
        pair = fmt.distinguishable(_at(values, i), (_at(low, i) + _at(high, i)) / 2)
        listed.append((f"{one.cells.gpus[i]} x {one.cells.batch[i]}", *pair))
    return listed


def where(one: Finding) -> str:
    """Return a finding's first cells with their values, and how many more cells it has, as text."""
    listed = [
        cell + f": {value}" * (value != "–") + f", expected {right}" * (right != "–")
        for cell, value, right in cells(one)[:SHOWN]
    ]
    text = ("; " if ":" in "".join(listed) else ", ").join(listed)
    more = f" and {rest} more" if (rest := int(one.place.sum()) - len(listed)) > 0 else ""
    return f"{one.cells.strategy}: {text}{more}".removeprefix(": ")


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
