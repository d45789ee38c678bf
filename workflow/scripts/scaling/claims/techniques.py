"""Question 4.2: whether techniques, or more updates, bring large batches to the reference.

What each technique gains, and the verdict on it, is in remedies.csv.
"""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.tables.experiments.best_remedy import (
    PRECISE,
    beside_the_rate,
    best,
    plain_sweep,
    reference_epochs,
)
from scaling.tables.experiments.gap import BEHIND, CLOSED, gap
from scaling.tables.experiments.same_runs import difference

MOMENTUM = 0.1
"""Of torch.nn.BatchNorm2d: the share of an update's own batch in the running statistics."""
NOTABLE = 0.1


def claims(tables: ClaimTables) -> list[Claim]:
    """Claims on each global batch above that of the reference, from remedies.csv."""
    plain = reference_runs(tables)
    if plain.empty:
        return []
    runs, table = tables["convergence"], tables["remedies"]
    size = int(plain["global_batch"].iloc[0])
    chosen = runs.loc[runs["chosen"].eq(True), "global_batch"]
    larger = sorted({int(batch) for batch in chosen if batch > size})
    best_there = best(table, size)
    return [
        *(_closes("Q4.2-gap", batch, best(table, batch), best_there, tables) for batch in larger),
        *_equal_updates(larger, tables),
        *_running_statistics(larger, tables),
    ]


def _closes(kind: str, batch: int, row: Any, reference: Any, tables: ClaimTables) -> Claim:
    """That a row of remedies.csv comes as far in test accuracy as a row at the reference batch.

    Beyond the end of a sweep a technique may only be better: one whose best rate is at an end is
    not behind, and with the reference's at an end nothing is closed.
    """
    about = f"global batch {batch}"
    if row is None or reference is None:
        return tables.claim(kind, {}, about, case="not_learned")
    own, others = runs_of(tables, row), runs_of(tables, reference)
    found, margin = difference(own, others, "test_accuracy"), float(row.accuracy_margin)
    tells = gap(found.low, found.high, margin)
    return tables.claim(
        kind,
        {
            "remedy": row.remedy,
            "learning_rate": row.learning_rate,
            "epochs": row.planned_epochs,
            "updates": row.planned_updates,
            "reference_batch": int(reference.global_batch),
            "reference_remedy": reference.remedy,
            "reference_learning_rate": reference.learning_rate,
            "reference_epochs": reference.planned_epochs,
            "reference_run_updates": reference.planned_updates,
            "accuracy_margin": margin,
            **figures_of(own, "test_accuracy"),
            **figures_of(others, "test_accuracy", "reference_"),
            **found.figures("test_accuracy"),
        },
        about,
        holds=tells == CLOSED and not reference.at_edge,
        fails=tells == BEHIND and not row.at_edge,
        own=own,
        found=found,
        at_end=tells in (CLOSED, BEHIND),
    )


def _equal_updates(larger: list[int], tables: ClaimTables) -> list[Claim]:
    """That plain SGD with as many updates as the reference comes as far."""
    kind, table = "Q4.2-equal-updates", tables["remedies"]
    reference = next(table[table["reference"].eq(True)].itertuples())
    plain = table["options"].map(lambda options: beside_the_rate(options) == ["equal_updates"])
    enough = table["planned_updates"] >= reference.planned_updates
    rows = table[
        plain.astype(bool) & enough & table["updates"].notna() & table["global_batch"].isin(larger)
    ]
    made = [
        _closes(kind, int(row.global_batch), row, reference, tables)
        for row in rows.drop_duplicates("global_batch").itertuples()
    ]
    return made or [tables.missing(kind)]


def _running_statistics(larger: list[int], tables: ClaimTables) -> list[Claim]:
    """That the start of the running statistics lowers test accuracy after few updates."""
    kind, table = "Q4.2-running-statistics", tables["remedies"]
    equal = table[table["planned_epochs"] == reference_epochs(table)]
    made, few = [], False
    for batch in larger:
        rows = equal[equal["global_batch"] == batch]
        updates = int(rows["planned_updates"].max())
        weight = (1 - MOMENTUM) ** updates
        plain = plain_sweep(table, batch)
        if weight <= NOTABLE:
            continue
        few = True
        options = ", ".join(part for part in (plain.options if plain else "", PRECISE) if part)
        anew = next(rows[rows["options"] == options].itertuples(), None)
        if not plain or not anew or anew.learning_rate != plain.learning_rate:
            continue
        gain = difference(runs_of(tables, anew), runs_of(tables, plain), "test_accuracy")
        figures = {"updates": updates, "weight_of_start": weight, **gain.figures("gain")}
        made.append(
            tables.claim(
                kind,
                figures,
                f"global batch {batch}",
                holds=gain.above,
                fails=gain.below,
                gain=gain,
            )
        )
    return made or [tables.missing(kind)] * few


def runs_of(tables: ClaimTables, row: Any) -> pd.DataFrame:
    """The runs of all seeds that a row of remedies.csv stands for."""
    runs = tables["convergence"]
    same = (runs["remedy"] == row.remedy) & (runs["global_batch"] == row.global_batch)
    return runs[same & runs["chosen"].eq(True)]


def reference_runs(tables: ClaimTables) -> pd.DataFrame:
    """The runs of all seeds that every other is compared with: plain SGD at the reference batch."""
    runs = tables["convergence"]
    return runs[runs["reference"].eq(True) & runs["chosen"].eq(True)]


def figures_of(runs: pd.DataFrame, quantity: str, prefix: str = "") -> dict[str, Any]:
    """Mean, minimum and maximum of `quantity` over the runs, by name."""
    values = runs[quantity].dropna()
    if values.empty:
        return {f"{prefix}{quantity}": "not finite"}
    return {
        f"{prefix}{quantity}": values.mean(),
        f"{prefix}{quantity}_min": values.min(),
        f"{prefix}{quantity}_max": values.max(),
    }
