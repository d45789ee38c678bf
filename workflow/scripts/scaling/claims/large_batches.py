"""Question 4.1: accuracy after equal epochs, of large global batches."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import figures_of
from scaling.tables import accuracy as learning
from scaling.tables.experiments.best_remedy import base_rate
from scaling.tables.experiments.same_runs import difference
from scaling.tables.noise import ranges_overlap


def claims(tables: ClaimTables) -> list[Claim]:
    """From convergence.csv, at the base rate; without it, from the timed cells' own seeds."""
    runs = base_rate(tables["convergence"])
    batches = runs["global_batch"]
    if batches.nunique() > 1:
        own, small = (runs[batches == batch] for batch in (batches.max(), batches.min()))
        return [_largest(own, small, tables)]
    return _cells(tables)


def _largest(own: pd.DataFrame, small: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the largest global batch has learned less than the smallest."""
    row, first = next(own.itertuples()), next(small.itertuples())
    figures: dict[str, Any] = {
        "largest_global_batch": int(row.global_batch),
        "reference_batch": int(first.global_batch),
        "epochs": row.planned_epochs,
        "seeds": len(own),
        "reference_seeds": len(small),
        "learning_rate": row.learning_rate,
        "updates": row.planned_updates,
        "reference_run_updates": first.planned_updates,
    }
    intervals = {}
    for split in ("train", "test"):
        for runs, prefix in ((own, ""), (small, "reference_")):
            figures |= figures_of(runs, f"{split}_loss", prefix)
            figures |= figures_of(runs, f"{split}_accuracy", prefix)
        intervals[split] = difference(own, small, f"{split}_accuracy")
        figures |= intervals[split].figures(f"{split}_accuracy")
    return tables.claim(
        "Q4.1-largest",
        figures,
        holds=all(interval.below for interval in intervals.values()),
        fails=any(interval.above for interval in intervals.values()),
        largest=own,
        smallest=small,
        train=intervals["train"],
        test=intervals["test"],
    )


def _cells(tables: ClaimTables) -> list[Claim]:
    """That the largest global batch of each recipe and strategy is less accurate than a small."""
    if tables["timing"].empty or tables["accuracy"].empty:
        return []
    compared = learning.compare_batches(tables["timing"], tables["accuracy"])
    made = []
    for (recipe, strategy), rows in compared.groupby(["recipe", "strategy"], sort=False):
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if len(known):
            large = row_at(known, known["global_batch_size"].idxmax())
            small = next(rows[rows["reference"]].itertuples())
            made.append(_cell(f"{recipe}/{strategy}", large, small, tables))
    return made


def _cell(about: str, large: Any, small: Any, tables: ClaimTables) -> Claim:
    quantity = large.difference_of
    value, other = getattr(large, quantity), getattr(small, quantity)
    ends = [getattr(row, f"{quantity}{end}") for row in (large, small) for end in ("_min", "_max")]
    seeds = [int(getattr(row, f"{quantity}_count")) for row in (large, small)]
    apart = min(seeds) > 1 and not ranges_overlap(*ends)
    figures = {
        "global_batch_size": large.global_batch_size,
        "reference_batch_size": small.global_batch_size,
        quantity: value,
        f"reference_{quantity}": other,
        "seeds": seeds[0],
        "reference_seeds": seeds[1],
    }
    return tables.claim(
        "Q4.1",
        figures,
        about,
        holds=apart and value < other,
        fails=apart and value > other,
        quantity=quantity,
        value=value,
        other=other,
    )
