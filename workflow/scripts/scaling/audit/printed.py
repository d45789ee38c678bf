"""Check the figures that a document printed against what its times give.

A study that prints no figures has no such findings. A printed figure that is wrong by a known
mistake is found by one check only: the one for that mistake, or `other_definition`.
"""

from typing import Any

import pandas as pd

from scaling.audit.finding import Check, Study, findings
from scaling.core.grid import CELL_KEYS
from scaling.published.definitions import MISTAKES
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
OTHER_SINGLE = {"other_single_time", "another_row", "repeated_single_time", "second_single_time"}
OF_OWN_CHECKS = {"one_iteration", "batch_as_bandwidth", "unexplained", *OTHER_SINGLE, *UNCHECKED}


def printed_parts_differ_from_total(study: Study) -> pd.DataFrame:
    """The printed compute + communication = the epoch, with or without loading, to the last digit.

    A difference of one unit in the last digit of each is rounding.
    """
    compute, rest = (_printed(study, name) for name in ("compute_seconds", "communication_seconds"))
    both = compute.merge(rest, on=CELL_KEYS, suffixes=("", "_rest"))
    both = both.merge(study.timing, on=CELL_KEYS)
    parts = both["printed"] + both["printed_rest"]
    rounding = (both["last_digit"] + both["last_digit_rest"]) * (1 + 1e-9)
    whole, without = both["epoch_seconds"], both["epoch_seconds_without_loading"]
    apart = ~((parts - whole).abs() <= rounding) & ~((parts - without).abs() <= rounding)
    message = "the printed compute and communication times do not add up to the epoch's"
    return findings(both[apart], "error", message, parts, whole)


def printed_communication_below_zero(study: Study) -> pd.DataFrame:
    """A printed communication time is not below 0."""
    rows = _printed(study, "communication_seconds").query("printed < 0")
    message = "the printed communication time is below 0"
    return findings(rows, "warning", message, rows["printed"], 0)


def printed_utilization_above_all(study: Study) -> pd.DataFrame:
    """A printed utilization is at most 100 %."""
    rows = _printed(study, "utilization_percent").query("printed > 100")
    return findings(rows, "warning", "the printed utilization is above 100 %", rows["printed"], 100)


def printed_speedup_above_gpus(study: Study) -> pd.DataFrame:
    """A printed speedup is at most N, give or take its last digit."""
    rows = _printed(study, "speedup").query("printed - gpus > last_digit")
    message = "the printed speedup is above the number of GPUs"
    return findings(rows, "warning", message, rows["printed"], rows["gpus"])


def printed_bytes_of_one_iteration(study: Study) -> pd.DataFrame:
    """A printed bandwidth is bytes and seconds of the same thing: both of an epoch."""
    return _by_mistake(study, {"one_iteration"})


def printed_bandwidth_is_batch_size(study: Study) -> pd.DataFrame:
    """A printed bandwidth is not a batch size."""
    return _by_mistake(study, {"batch_as_bandwidth"})


def printed_single_time_differs(study: Study) -> pd.DataFrame:
    """One T(1,b) for one b: in the study's table, behind its derived figures, in its other lists.

    Where a printed figure follows from another T(1,b), `found` is that one.
    """
    return _by_mistake(study, OTHER_SINGLE)


def other_definition(study: Study) -> pd.DataFrame:
    """A printed figure follows the definition of its name, and not another one."""
    return _by_mistake(study, set(MISTAKES) - OF_OWN_CHECKS)


def printed_cannot_be_checked(study: Study) -> pd.DataFrame:
    """The study has what a printed figure follows from: T(N,b), T(1,b), parameters, a peak."""
    return _by_mistake(study, UNCHECKED)


def not_reproduced(study: Study) -> pd.DataFrame:
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
    message = f" follows from the study's own definition only to {WITHIN}"
    words = "the printed " + near["quantity"].map(WORDS) + message
    remarks = findings(near, "info", words, near["printed"], near["by_definition"])
    return pd.concat([_by_mistake(study, {"unexplained"}), remarks])


CHECKS: list[Check] = [
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


def _printed(study: Study, quantity: str) -> pd.DataFrame:
    return study.printed[study.printed["quantity"] == quantity]


def _by_mistake(study: Study, names: set[str]) -> pd.DataFrame:
    """A finding for each printed figure and each of its mistakes that is among `names`.

    It is held against what would be right: for a wrong T(1,b), that time itself.
    """
    rows = study.printed.assign(mistake=study.printed["mistakes"].str.split(";"))
    rows = rows.explode("mistake", ignore_index=True)
    rows = rows[rows["mistake"].isin(names)]
    single = rows["mistake"] == "other_single_time"
    return findings(
        rows,
        [MISTAKES[name].severity for name in rows["mistake"]],
        [_sentence(row) for row in rows.itertuples()],
        rows["printed"].mask(single, rows["implied_single_seconds"]),
        rows["derived"].mask(single, rows["single_seconds"]),
    )


def _sentence(row: Any) -> str:
    rule = row.explained_by or row.definition
    said = MISTAKES[row.mistake].sentence.format(rule=rule)
    return f"the printed {WORDS[row.quantity]} {said}"
