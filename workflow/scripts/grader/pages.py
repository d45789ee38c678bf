"""Write the results of an audit: lines for a terminal, and the page of published studies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from grader.formulas import QUESTION, TITLE
from grader.judge import Finding, Judgement, judge
from grader.study import CIFAR10_TRAIN_IMAGES, FORMULAS, Study, read_folder
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page

TEMPLATE = Path(__file__).with_name("published.html.j2")
COSTS = {"error": 2.0, "warning": 0.5, "remark": 0.0}
"""Points subtracted for a cause, once per study, by severity."""
COLUMNS = ["study", "folder", "cells", "result", "causes", "points"]
WRONG = ["question", "quantity", "N x b", "printed", "right"]
FINDINGS = ["severity", "cause", "what happened", "cells (N x b)", "what to do"]
SHOWN = 3
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
    def title(self) -> str:
        return self.study.description.title or self.study.name

    @property
    def facts(self) -> dict[str, str]:
        """Return what is known of the study, by name."""
        of, size = self.study, "parameters not stated"
        if of.parameters:
            size = f"{of.parameters[1]:,.0f} parameters, so {fmt.data(of.parameters[1] * 4)}"
            size += " of float32 gradients"
        strategies = ", ".join(filter(None, of.strategies)) or "not stated"
        facts = {"Folder": self.folder, "Hardware": of.description.hardware}
        facts |= {"Strategy": strategies, "Model": f"{of.model}, {size}"}
        return facts | {"Units": of.description.units}

    @property
    def notes(self) -> list[str]:
        doubts = (f"Doubt: {one}" for one in self.study.description.doubts)
        return [*doubts, *dict.fromkeys(self.study.notes)]

    @property
    def result(self) -> str:
        """Return verdicts and findings: `9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        severities = [one.severity for one in self.judgement.findings]
        total = fmt.plural(self.judgement.figures.total(), "figure")
        right = ", ".join(f"{n} {word}" for word, n in self.judgement.figures.items() if n)
        counts = [fmt.plural(severities.count(one), one) for one in COSTS]
        found = ", ".join(one for one in counts if one[:2] != "0 ") or "no findings"
        return f"{total}: {right}; {found}" if right else f"no figures beside the times; {found}"

    @property
    def tables(self) -> list[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Return caption, columns and rows of wrong figures, and of findings."""
        findings, wrong = list[tuple[str, ...]](), list[tuple[str, ...]]()
        for one in self.judgement.findings:
            sentence, advice = one.words
            findings.append((one.severity, fmt.words(one.cause), sentence, where(one), advice))
            if one.quantity and one.severity != "remark":
                about = FORMULAS["quantities"][one.quantity]
                wrong += [(about[QUESTION], about[TITLE], *cell) for cell in cells(one)]
        return [("Wrong figures", WRONG, wrong), ("Findings", FINDINGS, findings)]

    @property
    def points(self) -> list[tuple[str, str, str]]:
        """Return points and full points of each audited question and of all; a cause costs once."""
        question = {name: entry[QUESTION] for name, entry in FORMULAS["quantities"].items()}
        full = {name: n for name, n in (self.form or {}).items() if name in question.values()}
        left, paid = dict(full), set[str]()
        for one in self.judgement.findings:
            name = question.get(one.quantity, "Q2")
            if name in left and one.cause not in paid:
                left[name] = max(0, left[name] - COSTS[one.severity])
            paid.add(one.cause)
        rows = [(name, f"{left[name]:g}", f"{n:g}") for name, n in full.items()]
        total = ("all", f"{sum(left.values()):g}", f"{sum(full.values()):g}")
        return [*rows, total] if rows else []

    @property
    def lines(self) -> list[str]:
        """Return the lines for a terminal: what was not read, and each finding."""
        lines = [f"note: {note}" for note in dict.fromkeys(self.study.notes)]
        for severity, cause, sentence, place, advice in self.tables[1][2]:
            action = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){action}")
        return lines

    def overview(self, link: str) -> dict[str, Any]:
        """Return the study's link and row (`COLUMNS`) for the index of all studies."""
        grave = [one.cause for one in self.judgement.findings if one.severity != "remark"]
        causes = ", ".join(map(fmt.words, dict.fromkeys(grave))) or "–"
        about = (self.study.name, self.folder, len(self.study.rows), self.result, causes)
        return {"link": link, "row": (*about, self.points[-1][1] if self.points else "")}


def cells(one: Finding) -> list[tuple[str, str, str]]:
    """Return the cells of a finding as text: N x b, printed value, expected value.

    Expected values whose middle is negative (noise), or that are infinite, are not shown.
    """
    expected = np.where(np.isfinite(one.expected.ends), one.expected.ends, np.nan).mean(0)
    expected = np.where(expected < 0, np.nan, expected)
    values = zip(*np.broadcast_arrays(one.printed.middle, expected, one.place), strict=True)
    return [
        (f"{n} x {b}", *fmt.distinguishable(float(value), float(right)))
        for n, b, (value, right, there) in zip(one.cells.gpus, one.cells.batch, values, strict=True)
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
    """Write a page of judged studies, with an index of their overviews if there are any."""
    about: Any = {"columns": COLUMNS, "index": index, "studies": studies}
    files.write_text(target, page.render(TEMPLATE, title=title, **about))


@command_line.script
def main(folders: tuple[Path, ...], output: Path) -> None:
    """Write the page of the studies in `folders`: their printed figures, and the errors in them."""
    studies = []
    for folder in folders:
        each = read_folder(folder)
        if lost := [note for one in each for note in one.notes if "left out" in note]:
            raise UserError(f"{folder}/timings.csv, {lost[0]}")
        studies += [Judged(one, str(folder), judge(one, CIFAR10_TRAIN_IMAGES)) for one in each]
    index = [one.overview(f"#{one.id}") for one in studies]
    write(output, "Published studies, replayed and audited", index, studies)
