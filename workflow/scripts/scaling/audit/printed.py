"""The audit's checks on the figures that a document printed, beside what its times give.

A check is a function from the table `scaling.printed` and the timing table to its findings; it
finds nothing in a study that prints no figures. A printed figure that is wrong by a known mistake
is found by one check only: the one for that mistake, or `other_definition`.
"""

from typing import Any

import pandas as pd

from scaling.audit.finding import Finding, finding
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
OWN_CHECK = {
    "one_iteration",
    "batch_as_bandwidth",
    "other_single_time",
    "another_row",
    "repeated_single_time",
    "second_single_time",
    "unexplained",
    *UNCHECKED,
}
"""The mistakes that have a check of their own."""


def printed_parts_differ_from_total(printed: pd.DataFrame, timing: pd.DataFrame) -> list[Finding]:
    """The printed compute + communication = the epoch, with or without loading, to the last digit.

    A difference of one unit in the last digit of each is rounding.
    """
    compute, rest = (
        printed[printed["quantity"] == quantity]
        for quantity in ("compute_seconds", "communication_seconds")
    )
    both = compute.merge(rest, on=CELL_KEYS, suffixes=("", "_rest")).merge(timing, on=CELL_KEYS)
    found = []
    for row in both.itertuples():
        parts = row.printed + row.printed_rest
        rounding = (row.last_digit + row.last_digit_rest) * (1 + 1e-9)
        totals = [row.epoch_seconds, row.epoch_seconds_without_loading]
        if not any(abs(parts - total) <= rounding for total in totals):
            message = "the printed compute and communication times do not add up to the epoch's"
            found.append(finding(row, "error", message, parts, row.epoch_seconds))
    return found


def printed_communication_below_zero(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed communication time is not below 0."""
    rows = _of(printed, "communication_seconds")
    message = "the printed communication time is below 0"
    return [
        finding(row, "warning", message, row.printed, 0)
        for row in rows[rows["printed"] < 0].itertuples()
    ]


def printed_utilization_above_all(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed utilization is at most 100 %."""
    rows = _of(printed, "utilization_percent")
    message = "the printed utilization is above 100 %"
    return [
        finding(row, "warning", message, row.printed, 100)
        for row in rows[rows["printed"] > 100].itertuples()
    ]


def printed_speedup_above_gpus(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed speedup is at most N, give or take its last digit."""
    rows = _of(printed, "speedup")
    above = rows["printed"] > rows["gpus"] + rows["last_digit"]
    message = "the printed speedup is above the number of GPUs"
    return [
        finding(row, "warning", message, row.printed, row.gpus) for row in rows[above].itertuples()
    ]


def printed_bytes_of_one_iteration(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed bandwidth is bytes and seconds of the same thing: both of an epoch."""
    return _by_mistake(_of(printed, "bandwidth_gb_per_s"), {"one_iteration"})


def printed_bandwidth_is_batch_size(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed bandwidth is not a batch size."""
    return _by_mistake(printed, {"batch_as_bandwidth"})


def printed_single_time_differs(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """One T(1,b) for one b: in the study's table, behind its derived figures, in its other lists.

    Where a printed figure follows from another T(1,b), found is that one.
    """
    names = {"other_single_time", "another_row", "repeated_single_time", "second_single_time"}
    return _by_mistake(printed, names)


def other_definition(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed figure follows the definition of its name, and not another one."""
    return _by_mistake(printed, set(MISTAKES) - OWN_CHECK)


def printed_cannot_be_checked(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """The study has what a printed figure follows from: T(N,b), T(1,b), parameters, a peak."""
    return _by_mistake(printed, UNCHECKED)


def not_reproduced(printed: pd.DataFrame, _: pd.DataFrame) -> list[Finding]:
    """A printed figure follows from the study's own times by the study's own definition.

    The definition is the one that gives most of its figures. Wrong by less than
    `printed_figures.NEARLY` is a remark, as it may have been rounded on the way.
    """
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


CHECKS = [
    printed_parts_differ_from_total,
    printed_communication_below_zero,
    printed_utilization_above_all,
    printed_speedup_above_gpus,
    printed_bytes_of_one_iteration,
    printed_bandwidth_is_batch_size,
    printed_single_time_differs,
    other_definition,
    printed_cannot_be_checked,
    not_reproduced,
]


def _of(printed: pd.DataFrame, quantity: str) -> pd.DataFrame:
    return printed[printed["quantity"] == quantity]


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
