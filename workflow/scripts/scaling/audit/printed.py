"""Check the figures that a document printed against what its times give.

A study that prints no figures has no such findings. A printed figure that is wrong by a known
mistake is found by one check only: the one for that mistake, or `other_definition`.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.audit.finding import Check, Finding, Study, finding
from scaling.core.grid import CELL_KEYS
from scaling.published.mistakes import MISTAKES
from scaling.published.printed_figures import WITHIN

WORDS = {
    "speedup": "speedup",
    "compute_seconds": "compute time",
    "communication_seconds": "communication time",
    "bandwidth_gb_per_s": "bandwidth",
    "utilization_percent": "utilization",
    "epoch_seconds": "time",
}
UNCHECKED = {"no_time", "no_single_time", "no_parameters", "no_peak"}


def printed_parts_differ_from_total(study: Study) -> list[Finding]:
    """The printed compute + communication = the epoch, with or without loading, to the last digit.

    A difference of one unit in the last digit of each is rounding.
    """
    compute, rest = (
        study.printed[study.printed["quantity"] == quantity]
        for quantity in ("compute_seconds", "communication_seconds")
    )
    both = compute.merge(rest, on=CELL_KEYS, suffixes=("", "_rest"))
    found = []
    for row in both.merge(study.timing, on=CELL_KEYS).itertuples():
        parts = row.printed + row.printed_rest
        rounding = (row.last_digit + row.last_digit_rest) * (1 + 1e-9)
        totals = [row.epoch_seconds, row.epoch_seconds_without_loading]
        if not any(abs(parts - total) <= rounding for total in totals):
            message = "the printed compute and communication times do not add up to the epoch's"
            found.append(finding(row, "error", message, parts, row.epoch_seconds))
    return found


def _beyond(quantity: str, message: str, limit: Callable[[Any], float], sign: int = 1) -> Check:
    """Make a check that warns of printed figures above a cell's limit, below it for `sign` -1."""

    def check(study: Study) -> list[Finding]:
        rows = study.printed[study.printed["quantity"] == quantity]
        return [
            finding(row, "warning", message, row.printed, limit(row))
            for row in rows.itertuples()
            if sign * (row.printed - limit(row)) > (row.last_digit if quantity == "speedup" else 0)
        ]

    return check


def _of_mistakes(*names: str) -> Check:
    """Make a check that finds the printed figures with one of these mistakes."""
    return lambda study: _by_mistake(study.printed, set(names))


OTHER_SINGLE = [
    *("other_single_time", "another_row", "repeated_single_time", "second_single_time"),
]
OF_OWN_CHECKS = {"one_iteration", "batch_as_bandwidth", "unexplained", *OTHER_SINGLE, *UNCHECKED}
MADE: dict[str, tuple[str, Check]] = {
    "printed_communication_below_zero": (
        "A printed communication time is not below 0.",
        _beyond(
            "communication_seconds", "the printed communication time is below 0", lambda _: 0, -1
        ),
    ),
    "printed_utilization_above_all": (
        "A printed utilization is at most 100 %.",
        _beyond("utilization_percent", "the printed utilization is above 100 %", lambda _: 100),
    ),
    "printed_speedup_above_gpus": (
        "A printed speedup is at most N, give or take its last digit.",
        _beyond("speedup", "the printed speedup is above the number of GPUs", lambda row: row.gpus),
    ),
    "printed_bytes_of_one_iteration": (
        "A printed bandwidth is bytes and seconds of the same thing: both of an epoch.",
        _of_mistakes("one_iteration"),
    ),
    "printed_bandwidth_is_batch_size": (
        "A printed bandwidth is not a batch size.",
        _of_mistakes("batch_as_bandwidth"),
    ),
    # Where a printed figure follows from another T(1,b), `found` is that one.
    "printed_single_time_differs": (
        "One T(1,b) for one b: in the study's table, behind its derived figures, in its other "
        "lists.",
        _of_mistakes(*OTHER_SINGLE),
    ),
    "other_definition": (
        "A printed figure follows the definition of its name, and not another one.",
        _of_mistakes(*set(MISTAKES) - OF_OWN_CHECKS),
    ),
    "printed_cannot_be_checked": (
        "The study has what a printed figure follows from: T(N,b), T(1,b), parameters, a peak.",
        _of_mistakes(*UNCHECKED),
    ),
}
"""Checks that only differ in what they look for: what each judges, and the check."""
for _name, (_rule, _check) in MADE.items():
    _check.__name__, _check.__doc__ = _name, _rule


def not_reproduced(study: Study) -> list[Finding]:
    """A printed figure follows from the study's own times by the study's own definition.

    The definition is the one that gives most of its figures. Wrong by less than
    `printed_figures.NEARLY` is a remark, as it may have been rounded on the way.
    """
    printed = study.printed
    near = printed[
        (printed["reproduced"] == "nearly")
        & (printed["explained_by"] == "")
        & ~printed["mistakes"].isin(["other_single_time", "unexplained", *UNCHECKED])
    ]
    return _by_mistake(printed, {"unexplained"}) + [
        finding(
            row,
            "info",
            f"the printed {WORDS[row.quantity]} follows from the study's own definition only "
            f"to {WITHIN}",
            row.printed,
            row.by_definition,
        )
        for row in near.itertuples()
    ]


CHECKS: list[Check] = [
    printed_parts_differ_from_total,
    *(check for _, check in MADE.values()),
    not_reproduced,
]


def _by_mistake(printed: pd.DataFrame, names: set[str]) -> list[Finding]:
    """A finding for each printed figure and each of its mistakes that is among `names`."""
    return [
        finding(
            row,
            MISTAKES[name].severity,
            f"the printed {WORDS[row.quantity]} {_sentence(row, name)}",
            *_held_against(row, name),
        )
        for row in printed.itertuples()
        for name in row.mistakes.split(";")
        if name in names
    ]


def _sentence(row: Any, mistake: str) -> str:
    return MISTAKES[mistake].sentence.format(rule=row.explained_by or row.definition)


def _held_against(row: Any, mistake: str) -> tuple[float, float]:
    """What stands there and what would be right: for a wrong T(1,b), that time itself."""
    if mistake == "other_single_time":
        return row.implied_single_seconds, row.single_seconds
    return row.printed, row.derived
