"""Show the results of an audit: lines for a terminal, and HTML pages."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from grader.formulas import QUESTION, TITLE
from grader.judge import SEVERITIES, Finding, Judgement
from grader.study import FORMULAS, Study
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.report import page

TEMPLATE = Path(__file__).with_name("published.html.j2")
COSTS = {"error": 2.0, "warning": 0.5, "remark": 0.0}
"""Points subtracted for a cause, once per study, by severity."""
TITLES = {name: entry[TITLE] for name, entry in FORMULAS["quantities"].items()}
QUESTIONS = {name: entry[QUESTION] for name, entry in FORMULAS["quantities"].items()}
COLUMNS = ["study", "folder", "cells", "result", "causes", "points"]
SHOWN = 3
"""Largest number of cells in the line of a finding."""


@dataclass(frozen=True)
class Judged:
    """A judged study with its folder or file; `form` has the full points of each question."""

    study: Study
    folder: str
    judgement: Judgement
    form: dict[str, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the HTML id of the study; no two studies of a folder have the same name."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def title(self) -> str:
        return self.study.about.get("title", self.study.name)

    @property
    def result(self) -> str:
        """Return verdicts and findings: `9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        severities = Counter(one.severity for one in self.judgement.findings)
        counts = [fmt.plural(severities[x], x) for x in SEVERITIES if severities[x]]
        figures = self.judgement.figures
        right = ", ".join(f"{n} {word}" for word, n in figures.items() if n)
        total = f"{fmt.plural(figures.total(), 'figure')}: {right}"
        findings = ", ".join(counts) or "no findings"
        return f"{total if right else 'no figures beside the times'}; {findings}"

    @property
    def findings(self) -> list[tuple[str, str, str, str, str]]:
        """Return severity, cause, what happened, cells and advice of each finding."""
        every = [(one, *one.words) for one in self.judgement.findings]
        return [(x.severity, fmt.words(x.cause), what, where(x), todo) for x, what, todo in every]

    @property
    def wrong(self) -> list[tuple[str, ...]]:
        """Return question, quantity, N x b, printed and right value of each wrong figure."""
        return [
            (QUESTIONS[one.quantity], TITLES[one.quantity], *cell)
            for one in self.judgement.findings
            if one.quantity and one.severity != "remark"
            for cell in cells(one)
        ]

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """Return points and full points of each audited question and of all; a cause costs once."""
        left = {name: n for name, n in self.form.items() if name in QUESTIONS.values()}
        for one in {one.cause: one for one in reversed(self.judgement.findings)}.values():
            name = QUESTIONS.get(one.quantity, "Q2")
            left |= {name: max(0, left[name] - COSTS[one.severity])} if name in left else {}
        left, full = left | {"all": sum(left.values())}, sum(self.form[name] for name in left)
        return [(name, f"{n:g}", f"{self.form.get(name, full):g}") for name, n in left.items()]

    @property
    def model(self) -> str:
        """Return the study's model and number of parameters as text."""
        if not self.study.parameters:
            return f"{self.study.model}, parameters not stated"
        size = self.study.parameters[1]
        gradients = f"{fmt.data(size * 4)} of float32 gradients"
        return f"{self.study.model}, {size:,.0f} parameters, so {gradients}"

    @property
    def lines(self) -> list[str]:
        """Return the lines for a terminal: what was not read, and each finding."""
        lines = [f"note: {note}" for note in dict.fromkeys(self.study.notes)]
        for severity, cause, sentence, place, advice in self.findings:
            action = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){action}")
        return lines

    @property
    def row(self) -> tuple[Any, ...]:
        """Return the study's row of the columns `COLUMNS` in the index of all studies."""
        causes = (row[1] for row in self.findings if row[0] != "remark")
        about = (self.study.name, self.folder, len(self.study.rows), self.result)
        points = self.points[-1][1] if self.form else ""
        return (*about, ", ".join(dict.fromkeys(causes)) or "–", points)


@np.errstate(invalid="ignore")
def cells(one: Finding) -> list[tuple[str, str, str]]:
    """Return the cells of a finding as text: N x b, printed value, expected value.

    Expected values below zero (noise) are not shown.
    """
    right = np.where(one.expected.middle < 0, np.nan, one.expected.middle)
    columns = (one.cells.gpus, one.cells.batch, one.printed.middle, right, one.place)
    return [
        (f"{n} x {b}", *fmt.distinguishable(float(value), float(expected)))
        for n, b, value, expected, there in zip(*np.broadcast_arrays(*columns), strict=True)
        if there
    ]


def where(one: Finding) -> str:
    """Return a finding's first `SHOWN` cells with their values, and the number of all, as text."""
    every = cells(one)
    listed = [
        cell + f": {value}" * (value != "–") + f", expected {right}" * (right != "–")
        for cell, value, right in every[:SHOWN]
    ]
    text = ("; " if ":" in "".join(listed) else ", ").join(listed)
    more = f" and more, {len(every)} in all" * (len(every) > SHOWN)
    return f"{one.cells.strategy}: {text}{more}".removeprefix(": ")


def write(target: Path, title: str, index: list[Any], studies: list[Judged]) -> None:
    """Write a page of judged studies; `index` has a link and a row of `COLUMNS` for each study."""
    about: Any = {"title": title, "columns": COLUMNS, "index": index, "studies": studies}
    files.write_text(target, page.render(TEMPLATE, **about))
