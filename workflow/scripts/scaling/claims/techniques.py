"""Question 4.2: whether techniques, or more updates, bring large batches to the reference.

Each technique's gain and verdict are in remedies.csv.
"""

from typing import Any

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.statistics import Difference
from scaling.tables.experiments import best_remedy, same_runs
from scaling.tables.experiments.same_runs import BEHIND, CLOSED, non_inferiority
from scaling.tables.noise import repeats_for_difference


def claims(tables: ClaimTables) -> list[Claim]:
    """Return claims on each trained global batch above the reference's, from remedies.csv."""
    plain, table = reference(tables), tables["remedies"]
    if plain is None:
        return []
    trained = table.loc[table["planned_updates"].notna(), "global_batch"]
    larger = sorted({int(batch) for batch in trained if batch > plain.global_batch})
    if table["validation_accuracy"].isna().all():
        return [tables.missing("Q4.2-gap"), *_equal_updates(plain, tables)]
    there = best_remedy.best(table, plain.global_batch)
    sgd = best_remedy.best(table, plain.global_batch, sgd=True)
    best = {batch: best_remedy.best(table, batch) for batch in larger}
    gaps = [_closes("Q4.2-gap", batch, row, there, tables) for batch, row in best.items()]
    if sgd and there and sgd.remedy != there.remedy:
        gaps += [_closes("Q4.2-best-sgd", batch, row, sgd, tables) for batch, row in best.items()]
    return [*gaps, *_equal_updates(plain, tables)]


def reference(tables: ClaimTables) -> Any | None:
    """Return the reference's row of remedies.csv; None in a study without techniques."""
    return next(tables["remedies"][tables["remedies"]["reference"].eq(True)].itertuples(), None)


def difference(own: Any, other: Any, tables: ClaimTables, of: str = "test_accuracy") -> Difference:
    """Return the difference in accuracy between the seeds of two rows of remedies.csv."""
    runs = tables["convergence"]
    chosen = runs[runs["chosen"].eq(True)]
    first, second = (
        chosen[(chosen["remedy"] == row.remedy) & (chosen["global_batch"] == row.global_batch)]
        for row in (own, other)
    )
    return same_runs.difference(first, second, of)


def _closes(kind: str, batch: int, own: Any, there: Any, tables: ClaimTables) -> Claim:
    """Claim that a technique reaches the test accuracy of another row at the reference batch.

    A technique whose best rate is at the end of its sweep might be better, so it is never called
    behind; if the reference's is at an end, nothing is called closed.
    """
    about = f"global batch {batch}"
    if own is None or there is None:
        return tables.claim(kind, about, case="not_learned")
    found, margin = difference(own, there, tables), float(own.accuracy_margin)
    base = best_remedy.base_rate(tables["remedies"], chosen=False)
    lab = next(base[base["global_batch"] == there.global_batch].itertuples(), None)
    tells, at_end = (
        non_inferiority(found.low, found.high, margin),
        bool(own.at_edge or there.at_edge),
    )
    return tables.claim(
        kind,
        about,
        holds=tells == CLOSED and not there.at_edge,
        fails=tells == BEHIND and not own.at_edge,
        # To the nearer verdict: within the margin, or behind.
        ratios=[]
        if at_end
        else repeats_for_difference(found, max(found.mean + margin, -found.mean)),
        own=own,
        there=there,
        test_accuracy=found,
        accuracy_margin=margin,
        lab=difference(own, lab, tables) if lab and lab.remedy != there.remedy else None,
        at_end=at_end,
    )


def _equal_updates(plain: Any, tables: ClaimTables) -> list[Claim]:
    """Claim that plain SGD with the reference's number of updates reaches its accuracy."""
    kind, table = "Q4.2-equal-updates", tables["remedies"]
    options = table["options"].map(best_remedy.non_learning_rate_options)
    enough = table["updates"].notna() & (table["planned_updates"] >= plain.planned_updates)
    rows = table[enough & (table["global_batch"] > plain.global_batch)]
    rows = rows[[each == ["equal_updates"] for each in options[rows.index]]]
    made = [
        _closes(kind, row.global_batch, row, plain, tables)
        for row in rows.drop_duplicates("global_batch").itertuples()
    ]
    return made or [tables.missing(kind)]
