"""What a student and a teacher read of an audit, and the page of published studies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from grader.formulas import FORMULAS
from grader.judge import Finding, Judgement, judge
from grader.study import CIFAR10_TRAIN_IMAGES, NOT_STATED, Study, read_folder
from scaling.core import command_line, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.report import page

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
COLUMNS = ["number", "severity", "cause", "strategy", "gpus", "batch_size", "quantity", "found"]
COLUMNS += ["expected_low", "expected_high", "cells", "sentence", "advice"]
INDEX = ["study", "folder", "cells", "figures", *SEVERITIES, "causes", "points"]
LISTED, SHOWN = 200, 5
"""Cells of a finding that have a row, and that stand in its line."""


@dataclass(frozen=True)
class Judged:
    """A study of a folder or file, and its findings."""

    study: Study
    folder: str
    judgement: Judgement
    points: str = ""
    by_question: tuple[tuple[str, str, str], ...] = ()

    @property
    def id(self) -> str:
        """Its place on the page: a folder has no two studies of one name."""
        return quote(f"{self.folder}/{self.study.name}")

    @property
    def title(self) -> str:
        return self.study.description.title or self.study.name

    @property
    def grave(self) -> list[Finding]:
        return [one for one in self.judgement.findings if one.severity != "info"]

    @property
    def counts(self) -> dict[str, int]:
        """How many findings of each severity it has."""
        found = [one.severity for one in self.judgement.findings]
        return {severity: found.count(severity) for severity in SEVERITIES}

    @property
    def figures(self) -> str:
        """`9 figures: 7 right, 2 wrong`."""
        of = self.judgement
        numbers = {"right": of.right, "wrong": of.wrong, "not checked": of.open}
        parts = ", ".join(f"{n} {word}" for word, n in numbers.items() if n)
        figures = fmt.plural(sum(numbers.values()), "figure")
        return f"{figures}: {parts}" if parts else "no figures beside the times"

    @property
    def told(self) -> str:
        """`9 figures: 7 right, 2 wrong; 1 error, 2 remarks`."""
        parts = [fmt.plural(n, SEVERITIES[severity]) for severity, n in self.counts.items() if n]
        return "; ".join(filter(None, [self.figures, ", ".join(parts) or "no findings"]))

    @property
    def wrong(self) -> list[tuple[str, str, str, str, str]]:
        """Each wrong figure: question, quantity, cell, what stands there and what is right."""
        found = []
        for one in self.grave:
            if one.quantity:
                about = [FORMULAS[key][one.quantity] for key in ("questions", "words")]
                found += [(*about, *cell) for cell in cells(one)]
        return found

    @property
    def causes(self) -> list[tuple[str, str, str, str, str]]:
        """Each finding: severity, cause, what happened and where, and what to do."""
        return [
            (SEVERITIES[one.severity], named(one), also(one), where(one), one.advice)
            for one in self.judgement.findings
        ]

    @property
    def lines(self) -> list[str]:
        """The lines of a terminal: what was not read, each wrong figure, and each cause."""
        lines = [f"note: {note}" for note in self.study.notes]
        for severity, cause, sentence, place, advice in self.causes:
            todo = f"; {advice}" if advice and severity != "remark" else ""
            lines.append(f"{severity}: {cause}: {sentence} ({place}){todo}")
        return lines

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row of audit.csv for each of the first cells of each finding."""
        for number, one in enumerate(self.judgement.findings, 1):
            places, of = one.place.nonzero()[0], one.cells
            about = (number, one.severity, ";".join(one.names), of.strategy or NOT_STATED)
            for i in places[:LISTED].tolist():
                at = (of.gpus[i], of.batch[i], one.quantity)
                figures = (_at(end, i) for end in (one.found.middle, *shown(one)))
                row = (*about, *at, *figures, len(places), one.sentence, one.advice)
                yield dict(zip(COLUMNS, row, strict=True))

    def overview(self, link: str) -> dict[str, Any]:
        """Its row in the index: cells, figures, findings of each severity, causes, points."""
        causes = dict.fromkeys(map(named, self.grave))
        about = (self.study.name, self.folder, len(self.study.rows), self.figures)
        row = (*about, *self.counts.values(), ", ".join(causes) or "–", self.points)
        return {"link": link, "row": row}


def _at(values: Any, i: int) -> float:
    return float(values if values.ndim == 0 else values[i])


def shown(one: Finding) -> tuple[Any, Any]:
    """The ends of what is expected; nothing below 0, which only noise gives."""
    low, high = one.expected
    hidden = (high < 0) | ~np.isfinite(high) | ~np.isfinite(low)
    return np.where(hidden, np.nan, low), np.where(hidden, np.nan, high)


def cells(one: Finding) -> list[tuple[str, str, str]]:
    """The cells of a finding, N x b, with what stands there and what is right, as text."""
    found, (low, high) = one.found.middle, shown(one)
    listed = []
    for i in one.place.nonzero()[0].tolist():
        pair = fmt.distinguishable(_at(found, i), (_at(low, i) + _at(high, i)) / 2)
        listed.append((f"{one.cells.gpus[i]} x {one.cells.batch[i]}", *pair))
    return listed


def where(one: Finding) -> str:
    """The first cells of a finding with what stands there, and how many more it has."""
    listed = []
    for cell, found, right in cells(one)[:SHOWN]:
        values = f": {found}" * (found != "–") + f", expected {right}" * (right != "–")
        listed.append(f"{cell}{values}")
    text = ("; " if ":" in "".join(listed) else ", ").join(listed)
    more = f" and {rest} more" if (rest := int(one.place.sum()) - len(listed)) > 0 else ""
    return f"{one.cells.strategy}: {text}{more}".removeprefix(": ")


def named(one: Finding) -> str:
    """The causes of a finding, in words."""
    return " and ".join(map(fmt.words, one.names))


def also(one: Finding) -> str:
    """What happened, and which other causes have as much evidence."""
    others = ", ".join(map(fmt.words, one.also))
    return one.sentence + (f"; also fits: {others}" if others else "")


def shared(folders: Sequence[Sequence[Judged]]) -> list[str]:
    """What is wrong in several folders, as `2 of 3: the printed speedup is ...`."""
    said = (dict.fromkeys(f.sentence for one in each for f in one.grave) for each in folders)
    counts = Counter(sentence for each in said for sentence in each).most_common()
    return [f"{count} of {len(folders)}: {text}" for text, count in counts if count > 1]


@command_line.script
def main(folders: tuple[Path, ...], template: Path, output: Path) -> None:
    """Write the page of the studies in `folders`: their printed figures, and the errors in them."""
    studies = []
    for folder in folders:
        found = read_folder(folder)
        if lost := [note for one in found for note in one.lost]:
            raise UserError(f"{folder}/timings.csv, {lost[0]}")
        studies += [
            Judged(one, str(folder), judge(one, found, CIFAR10_TRAIN_IMAGES)) for one in found
        ]
    about = {
        "title": "Published studies, replayed and audited",
        "index": [one.overview(f"#{one.id}") for one in studies],
        "shared": shared([[one] for one in studies]),
    }
    files.write_text(output, page.render(template, **about, studies=studies))
