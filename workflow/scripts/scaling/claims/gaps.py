"""Question 4.2: whether any technique comes as far as the reference batch, or more updates do."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import (
    figures_of,
    larger_batches,
    margin,
    reference_runs,
    runs_of,
)
from scaling.core.statistics import bonferroni
from scaling.tables.experiments.best_remedy import at_equal_epochs, best, is_plain
from scaling.tables.experiments.gap import BEHIND, CLOSED, gap
from scaling.tables.experiments.same_runs import difference


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim on each global batch above the reference, and one on equal updates."""
    if reference_runs(tables).empty:
        return []
    larger = larger_batches(tables)
    return [*(_left(batch, tables) for batch in larger), _equal_updates(larger, tables)]


def _left(batch: int, tables: ClaimTables) -> Claim:
    """That no technique closes the gap to the reference batch at equal epochs."""
    table, plain, allowed = tables["remedies"], reference_runs(tables), margin(tables)
    size = int(plain["global_batch"].iloc[0])
    found, beside = best(table, batch), best(table, size)
    if found is None or beside is None:
        missing = size if beside is None else batch
        return tables.missing("Q4.2-gap", "not_learned", str(batch), missing=missing)
    own, reference = runs_of(tables, found), runs_of(tables, beside)
    to_best, to_plain = (difference(own, each, "test_accuracy") for each in (reference, plain))
    tried = at_equal_epochs(table)
    tried = tried[tried["global_batch"] == batch]
    not_behind, ends = _not_behind(tried, reference, tables)
    closed = gap(to_best.low, to_best.high, allowed) == CLOSED
    figures: dict[str, Any] = {
        "remedies": len(tried),
        "remedies_not_behind": ", ".join(not_behind) or "none",
        "remedies_at_an_end": ", ".join(ends) or "none",
        "remedy": found.remedy,
        "learning_rate": found.learning_rate,
        "updates": found.updates,
        "reference_remedy": beside.remedy,
        "reference_learning_rate": beside.learning_rate,
        "reference_run_updates": beside.updates,
        "accuracy_margin": allowed,
        **figures_of(own, "train_accuracy"),
        **figures_of(own, "test_accuracy"),
        **figures_of(reference, "test_accuracy", "reference_"),
        **figures_of(plain, "test_accuracy", "plain_reference_"),
        **to_best.figures("test_accuracy"),
        **to_plain.figures("test_accuracy_to_plain"),
        **_highest(tried, reference, tables),
    }
    return tables.claim(
        "Q4.2-gap",
        figures,
        name=str(batch),
        holds=not not_behind and not ends,
        fails=closed and not beside.at_edge,
        size=size,
        own=own,
        to_best=to_best,
        not_behind=not_behind,
        ends=ends,
        reference_at_edge=beside.at_edge,
    )


def _not_behind(
    tried: pd.DataFrame, reference: pd.DataFrame, tables: ClaimTables
) -> tuple[list[str], list[str]]:
    """Techniques whose intervals do not lie below 0 (or do above −margin), and those at an end."""
    not_behind, ends = [], []
    for row in tried.itertuples():
        found = difference(runs_of(tables, row), reference, "test_accuracy")
        if gap(found.low, found.high, margin(tables)) != BEHIND:
            not_behind.append(str(row.remedy))
        elif row.at_edge:
            ends.append(str(row.remedy))
    return not_behind, ends


def _highest(tried: pd.DataFrame, reference: pd.DataFrame, tables: ClaimTables) -> dict[str, Any]:
    """The figures of the highest test accuracy, a choice made by the test set."""
    row = row_at(tried, tried["test_accuracy"].idxmax())
    own, confidence = runs_of(tables, row), bonferroni(len(tried))
    return {
        "highest_remedy": row.remedy,
        **figures_of(own, "test_accuracy", "highest_"),
        **difference(own, reference, "test_accuracy", confidence).figures("highest_test_accuracy"),
        "highest_confidence": confidence,
    }


def _equal_updates(batches: list[int], tables: ClaimTables) -> Claim:
    """That training until there were as many updates closes the gap of these global batches."""
    table, reference, allowed = tables["remedies"], reference_runs(tables), margin(tables)
    needed = int(reference["planned_updates"].iloc[0])
    size = int(reference["global_batch"].iloc[0])
    found = table[table["options"].map(_is_longer_plain).astype(bool) & table["updates"].notna()]
    found = found[found["global_batch"].isin(batches)].drop_duplicates("global_batch")
    rows = sorted(found.itertuples(), key=lambda row: int(row.global_batch))
    fewer = [(row, runs_of(tables, row)) for row in rows if row.planned_updates < needed]
    rows = [row for row in rows if row.planned_updates >= needed]
    if not rows:
        return tables.missing("Q4.2-equal-updates", "too_few", needed=needed, fewer=fewer)
    confidence, beside = bonferroni(len(rows)), best(table, size)
    reference_at_edge = bool(reference["at_edge"].any())
    figures: dict[str, Any] = {
        "reference_run_updates": needed,
        "reference_epochs": reference["planned_epochs"].iloc[0],
        "accuracy_margin": allowed,
        "confidence_to_refute": confidence,
    }
    equal, closed, behind = [], [], []
    for row in rows:
        own, batch = runs_of(tables, row), int(row.global_batch)
        to_plain = difference(own, reference, "test_accuracy")
        wide = difference(own, reference, "test_accuracy", confidence)
        tells = gap(to_plain.low, to_plain.high, allowed)
        closed.append(tells == CLOSED)
        lost = tells == BEHIND and gap(wide.low, wide.high, allowed) == BEHIND
        behind.append(lost and not row.at_edge)
        figures |= {f"epochs_at_{batch}": row.planned_epochs}
        figures |= figures_of(own, "test_accuracy", f"at_{batch}_")
        figures |= to_plain.figures(f"gap_at_{batch}")
        figures |= {f"gap_at_{batch}_high_to_refute": wide.figures("gap")["gap_high"]}
        to_best = None
        if beside is not None:
            to_best = difference(own, runs_of(tables, beside), "test_accuracy")
            figures |= to_best.figures(f"gap_to_best_at_{batch}")
        equal.append({"row": row, "runs": own, "to_plain": to_plain, "to_best": to_best})
    return tables.claim(
        "Q4.2-equal-updates",
        figures,
        holds=all(closed) and not reference_at_edge,
        fails=any(behind),
        needed=needed,
        size=size,
        equal=equal,
        fewer=fewer,
        best=beside,
        reference_at_edge=reference_at_edge,
    )


def _is_longer_plain(options: str) -> bool:
    """Whether these are the options of plain SGD at equal updates."""
    parts = options.split(", ")
    return "equal_updates" in parts and is_plain(
        ", ".join(part for part in parts if part != "equal_updates")
    )
