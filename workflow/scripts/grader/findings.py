"""What is to be said of a study: a finding for each cause, with its cells and what to do."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from grader import checks
from grader.causes import Cause, causes
from grader.cells import FORMULAS, PARAMETERS, UNKNOWN, Cells, of_strategy
from grader.definitions import verdicts
from grader.mistakes import MISTAKES, SEVERITIES
from grader.study import PublishedStudy

WORDS: dict[str, str] = FORMULAS["words"]
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
            cells, named = checks.as_seconds(of_strategy(study, strategy, train_images))
            found = verdicts(cells, stated, ring)
            explained, left = causes(found)
            cells = found["speedup"].cells
            for cause in explained:
                # What a wrong time implies is no finding of its own.
                known = {x: UNKNOWN.where(cause.cells, cells.columns[x]) for x in cause.times}
                cells = cells.with_columns(known)
            named += [*explained, *checks.by_formula(cells, found, left)]
            named += [*checks.identical(cells), *checks.fixed_part(cells)]
            rows += [row for one in named for row in _rows(cells, one, id(one))]
            gaps = checks.missing(cells)
            said = _said("missing_cell") | {"strategy": strategy, "cells": len(gaps)}
            rows += [said | {"gpus": n, "batch_size": b} for n, b in gaps[:LISTED]]
    expected = PARAMETERS.get(study.model, study.parameters)
    if study.parameters != expected and study.parameters in PARAMETERS.values():
        rows.append(_said("parameters_of_other_model") | {"found": study.parameters})
    rows.sort(key=lambda row: SEVERITIES.index(row["severity"]))
    table = pd.DataFrame(rows, columns=COLUMNS)
    numbers = table.groupby(["number", "cause", "strategy"], sort=False).ngroup() + 1
    return table.assign(number=numbers)


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
    rules = rule.split(";") if rule.count(";") == len(found) - 1 else [rule] * len(found)
    sentences = (one.sentence.format(rule=own) for one, own in zip(found, rules, strict=True))
    sentence = "; it ".join(sentences)
    if quantity in WORDS:
        sentence = f"the printed {WORDS[quantity]} {sentence}"
    return {
        **{"number": 0, "cause": names, "strategy": "", "quantity": quantity, "sentence": sentence},
        "cells": 0,
        "severity": min((one.severity for one in found), key=SEVERITIES.index),
        "advice": " ".join(filter(None, (one.advice for one in found))),
    }
