"""What is to be said of a study: a finding for each cause, with its cells and what to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from grader import plausibility
from grader.causes import Cause, causes
from grader.cells import FORMULAS, PARAMETERS, Cells, of_strategy
from grader.definitions import verdicts
from grader.intervals import of
from grader.study import TIMES, PublishedStudy

MISTAKES_FILE = Path(__file__).with_name("mistakes.yaml")
SEVERITIES = ["error", "warning", "info"]
WORDS: dict[str, str] = FORMULAS["words"]


@dataclass(frozen=True)
class Mistake:
    """How grave a cause is, what happened, and what to do about it, for mistakes.yaml.

    A sentence on a figure follows "the printed speedup …".
    """

    severity: str
    sentence: str
    advice: str = ""


MISTAKES = {
    name: Mistake(severity, *text.split(". ", maxsplit=1))
    for severity, found in yaml.safe_load(MISTAKES_FILE.read_text(encoding="utf-8")).items()
    for name, text in found.items()
}


COLUMNS = ["number", "severity", "cause", "strategy", "gpus", "batch_size", "quantity", "found"]
COLUMNS += ["expected_low", "expected_high", "explains", "suspects", "cells", "sentence", "advice"]
LISTED = 200
"""Cells of a finding that have a row: a study has a few dozen."""


def judge(study: PublishedStudy, train_images: int, ring: bool = False) -> pd.DataFrame:
    """Judge every time and figure of `study`; `ring` as `definitions.verdicts` has it.

    A row for each of the first `LISTED` of the `cells` of each finding, numbered, errors first:
    what stands there, and between what it should be. A finding `explains` so many of `suspects`
    wrong figures.
    """
    stated = study.description.definitions.model_dump(exclude_none=True)
    rows: list[dict[str, Any]] = []
    with np.errstate(all="ignore"):
        for strategy in study.strategies:
            cells, named = plausibility.as_seconds(of_strategy(study, strategy, train_images))
            verdict = verdicts(cells, stated, ring)
            for cause in (explained := causes(cells, verdict)):
                # What a wrong time implies is no finding of its own.
                for index in np.flatnonzero(cause.cells) if cause.quantity in TIMES else ():
                    cells = cells.with_time(cause.quantity, int(index), of(np.nan))
            named += explained
            named += [c for check in plausibility.CHECKS for c in check(cells, verdict)]
            rows += [row for one in named for row in _rows(cells, one, id(one))]
            gaps = plausibility.missing(cells)
            said = _said("missing_cell") | {"strategy": strategy, "cells": len(gaps)}
            rows += [said | {"gpus": n, "batch_size": b} for n, b in gaps[:LISTED]]
    expected = PARAMETERS.get(study.model, study.parameters)
    if study.parameters != expected and study.parameters in PARAMETERS.values():
        rows.append(_said("parameters_of_other_model") | {"found": study.parameters})
    rows.sort(key=lambda row: SEVERITIES.index(row["severity"]))
    found = pd.DataFrame(rows, columns=COLUMNS)
    numbers = found.groupby(["number", "cause", "strategy"], sort=False).ngroup() + 1
    return found.assign(number=numbers)


def _rows(cells: Cells, cause: Cause, number: int) -> Iterator[dict[str, Any]]:
    explains = sum(int(each.sum()) for each in cause.resolved.values())
    said = _said(cause.name, cause.quantity, cause.rule) | {"number": number}
    said |= {"strategy": cells.strategy, "explains": explains, "suspects": cause.suspects}
    said["cells"] = int(cause.cells.sum())
    found = None if cause.found is None else cause.found.middle
    for i in np.flatnonzero(cause.cells)[:LISTED].tolist():
        row = said | {"gpus": int(cells.gpus[i]), "batch_size": int(cells.batch[i])}
        if found is not None:
            row["found"] = found[i]
        if cause.expected is not None and np.isfinite(cause.expected.high[i]):
            row |= {f"expected_{end}": getattr(cause.expected, end)[i] for end in ("low", "high")}
        yield row


def _said(names: str, quantity: str = "", rule: str = "") -> dict[str, Any]:
    """What a finding of one mistake says, or of several joined by ";", as grave as the gravest."""
    found = [MISTAKES[name] for name in names.split(";")]
    sentence = "; it ".join(one.sentence.format(rule=rule) for one in found)
    if quantity in WORDS:
        sentence = f"the printed {WORDS[quantity]} {sentence}"
    return {
        **{"number": 0, "cause": names, "strategy": "", "quantity": quantity, "sentence": sentence},
        "cells": 0,
        "severity": min((one.severity for one in found), key=SEVERITIES.index),
        "advice": " ".join(filter(None, (one.advice for one in found))),
    }
