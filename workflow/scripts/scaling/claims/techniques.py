"""Question 4.2: the runs of techniques for large batches, and what few updates do to their test.

What each technique gains, and the verdict on it, is in remedies.csv.
"""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables
from scaling.core.statistics import CONFIDENCE, bonferroni
from scaling.tables.experiments.best_remedy import PRECISE, plain_sweep, reference_epochs
from scaling.tables.experiments.same_runs import difference

MOMENTUM = 0.1
"""Of torch.nn.BatchNorm2d: the share of an update's own batch in the running statistics."""
NOTABLE = 0.1


def runs_of(tables: ClaimTables, row: Any) -> pd.DataFrame:
    """The runs of all seeds that a row of remedies.csv stands for."""
    runs = tables["convergence"]
    same = (runs["remedy"] == row.remedy) & (runs["global_batch"] == row.global_batch)
    return runs[same & runs["chosen"].eq(True)]


def reference_runs(tables: ClaimTables) -> pd.DataFrame:
    """The runs of all seeds that every other is compared with: plain SGD at the reference batch."""
    runs = tables["convergence"]
    return runs[runs["reference"].eq(True) & runs["chosen"].eq(True)]


def larger_batches(tables: ClaimTables) -> list[int]:
    """The global batches above that of the reference, ascending; none without a reference."""
    runs, reference = tables["convergence"], reference_runs(tables)
    batches = runs.loc[runs["chosen"].eq(True), "global_batch"]
    return sorted({int(batch) for batch in batches if (reference["global_batch"] < batch).any()})


def margin(tables: ClaimTables) -> float:
    """The loss of accuracy, a fraction, that has to be excluded before a gap is closed."""
    return float(tables["remedies"]["accuracy_margin"].iloc[0])


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


def weight_of_start(updates: float) -> float:
    """The weight that mean 0 and variance 1 still have in the running statistics after updates.

    0 where it is not worth mentioning, at most `NOTABLE`.
    """
    weight = float((1 - MOMENTUM) ** updates)
    return weight if weight > NOTABLE else 0.0


def claims(tables: ClaimTables) -> list[Claim]:
    """That the start of the running statistics lowers test accuracy after few updates."""
    if reference_runs(tables).empty:
        return [tables.missing("Q4.2", "no_runs")]
    kind, table = "Q4.2-running-statistics", tables["remedies"]
    equal = table["planned_epochs"] == reference_epochs(table)
    few, pairs = [], []
    for batch in larger_batches(tables):
        rows = table[equal & (table["global_batch"] == batch)]
        updates = int(rows["planned_updates"].max())
        if weight := weight_of_start(updates):
            few.append((batch, updates, weight))
            pairs.append((batch, *_evaluated_twice(batch, rows, tables)))
    if not few:
        return [tables.missing(kind, "many_updates")]
    if not all(_at_one_rate(precise, plain) for _, precise, plain in pairs):
        return [tables.missing(kind, "no_pair", few=few)]
    confidence = bonferroni(len(pairs))
    gains, wide = (
        {batch: difference(own, plain, "test_accuracy", level) for batch, own, plain in pairs}
        for level in (CONFIDENCE, confidence)
    )
    figures: dict[str, Any] = {"confidence_to_refute": confidence}
    for batch, updates, weight in few:
        figures |= {f"updates_at_{batch}": updates, f"weight_of_start_at_{batch}": weight}
        figures |= gains[batch].figures(f"gain_at_{batch}")
    return [
        tables.claim(
            kind,
            figures,
            holds=all(gain.above for gain in gains.values()),
            fails=any(gain.below for gain in wide.values()),
            few=few,
            gains=list(gains.items()),
        )
    ]


def _at_one_rate(*groups: pd.DataFrame) -> bool:
    return all(len(runs) for runs in groups) and pd.concat(groups)["learning_rate"].nunique() == 1


def _evaluated_twice(
    batch: int, rows: pd.DataFrame, tables: ClaimTables
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of swept plain SGD with precise batch norms and without; no runs for none."""
    plain, none = plain_sweep(tables["remedies"], batch), tables["convergence"].iloc[:0]
    if plain is None:
        return none, none
    options = ", ".join(part for part in (plain.options, PRECISE) if part)
    precise = next(rows[rows["options"] == options].itertuples(), None)
    return none if precise is None else runs_of(tables, precise), runs_of(tables, plain)
