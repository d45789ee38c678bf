"""Printed against derived: which definition gives a printed figure, and which mistake it is."""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.published import explanation
from scaling.published.definitions import BY_COMMUNICATION, DEFINITIONS, Definition
from scaling.published.printed_figures import Figure, closeness, figures, last_digit
from scaling.published.study import PRINTED, PublishedStudy
from scaling.tables import schema


def printed_against_derived(
    study: PublishedStudy, timing: pd.DataFrame, tables: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """One row per printed figure of `study`, beside the `tables` derived from its times.

    A time on one GPU that the study gives a second time counts as printed, as `epoch_seconds`.
    Ours are by one estimate for each strategy (`by_one_estimate`); `note` says why one is missing.

    The definition of a study's quantity is the one that reproduces most of its figures (at least
    half; ours first among equals), as few documents state theirs. `reproduced` and `agrees` say
    whether that definition and ours give the printed figure: `exactly` (within one unit of its
    last digit), `nearly` (within `printed_figures.NEARLY`) or `no`; empty where there is nothing to
    compare with. `explained_by` is the definition that gives the figure exactly, not always the
    study's own. `factor` is printed / derived, where ours is above 0. `mistakes` are names of
    report/mistakes.yaml joined by ";", `inherited` those of the communication time printed beside a
    bandwidth that follows from it. `implied_single_seconds` is the T(1,b) that a figure would come
    from which no definition reproduces, beside `single_seconds`, that of the study's own table.
    """
    found = list(figures(study, timing, tables))
    rows = []
    for strategy in study.strategies:
        rows += _of_strategy([figure for figure in found if figure.facts.strategy == strategy])
    rows += _repeated(study, timing)
    words = dict.fromkeys(schema.TABLES["printed"].of_type("text"), "")
    return schema.arrange("printed", rows).astype(dict.fromkeys(words, object)).fillna(words)


def _of_strategy(found: list[Figure]) -> list[dict[str, Any]]:
    compared: list[tuple[Figure, Definition | None, Definition | None]] = []
    for quantity in PRINTED:
        same = [figure for figure in found if figure.quantity == quantity]
        share = quantity == "utilization_percent"
        choices = explanation.shares(found) if share else DEFINITIONS[quantity]
        own = explanation.own_definition(same, choices)
        compared += [(figure, own, explanation.giving(figure, own, choices)) for figure in same]
    unclear = [
        figure
        for figure, _, exact in compared
        if exact is None and closeness(figure.derived, figure.printed) != "exactly"
    ]
    rows = [_compare(figure, own, exact, unclear) for figure, own, exact in compared]
    # A bandwidth that follows from the communication time printed beside it has its mistakes.
    times = {
        (row["gpus"], row["batch_size"]): row["mistakes"]
        for row in rows
        if row["quantity"] == "communication_seconds"
    }
    for row in rows:
        follows = row["quantity"] == "bandwidth_gb_per_s" and row["agrees"] != "exactly"
        if follows and BY_COMMUNICATION in row["explained_by"]:
            row["inherited"] = times.get((row["gpus"], row["batch_size"]), "")
    return rows


def _compare(
    figure: Figure, own: Definition | None, exact: Definition | None, unclear: list[Figure]
) -> dict[str, Any]:
    by_definition = own.value(figure.facts) if own else math.nan
    agrees = closeness(figure.derived, figure.printed)
    if agrees == "exactly" or (exact and agrees == "nearly"):
        mistakes: tuple[str, ...] = ()
    elif exact:
        mistakes = exact.mistakes
    else:
        mistakes = explanation.without_definition(figure, own, unclear)
    row = {
        **_printed(figure.row, figure.quantity, figure.printed, figure.derived),
        "definition": own.name if own else "",
        "by_definition": by_definition,
        "reproduced": closeness(by_definition, figure.printed),
        "explained_by": exact.name if exact else "",
        "mistakes": ";".join(mistakes),
        "note": figure.note,
    }
    if "other_single_time" in mistakes:
        row["implied_single_seconds"] = explanation.implied_single(figure)[0]
        row["single_seconds"] = figure.facts.single
    return row


def _printed(row: Any, quantity: str, printed: Decimal, derived: float) -> dict[str, Any]:
    """The columns that every printed figure has, of the cell of `row`."""
    return {
        **{key: getattr(row, key) for key in CELL_KEYS},
        "quantity": quantity,
        "printed": float(printed),
        "last_digit": last_digit(printed),
        "derived": derived,
        "agrees": closeness(derived, printed),
        "factor": float(printed) / derived if derived > 0 else math.nan,
    }


def _repeated(study: PublishedStudy, timing: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The times of the study's sweep for cells that have another time already."""
    single = timing[(timing["gpus"] == 1) & timing["epoch_seconds"].notna()]
    cells = {row.batch_size: row for row in single.itertuples()}
    names = {"no": "repeated_single_time", "nearly": "second_single_time"}
    for again in study.sweep.dropna(subset="epoch_seconds").itertuples():
        row, printed = cells[again.batch_size], Decimal(str(again.epoch_seconds))
        found = _printed(row, "epoch_seconds", printed, row.epoch_seconds)
        yield found | {"mistakes": names.get(found["agrees"], "")}
