"""Question 4.1: loss and accuracy after equal epochs, of larger and larger global batches."""

from itertools import pairwise
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import figures_of, weight_of_start
from scaling.tables import accuracy as learning
from scaling.tables.experiments.best_remedy import base_rate
from scaling.tables.experiments.same_runs import difference
from scaling.tables.noise import ranges_overlap


def claims(tables: ClaimTables) -> list[Claim]:
    """From convergence.csv, at the base rate; without it, from the timed cells' own seeds."""
    runs = base_rate(tables["convergence"])
    groups = [(int(str(batch)), group) for batch, group in runs.groupby("global_batch")]
    if len(groups) > 1:
        return [_largest(groups[-1][1], groups[0][1], tables), _every(groups, tables)]
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
        row=row,
        first=first,
        largest=own,
        smallest=small,
        weight=weight_of_start(row.planned_updates),
        train=intervals["train"],
        test=intervals["test"],
    )


def _every(groups: list[tuple[int, pd.DataFrame]], tables: ClaimTables) -> Claim:
    """That each larger global batch has learned less than the one before it."""
    figures: dict[str, Any] = {}
    accuracies = [runs["train_accuracy"].dropna() for _, runs in groups]
    for (batch, _), values in zip(groups, accuracies, strict=True):
        figures[f"train_accuracy_at_{batch}"] = values.mean() if len(values) else "none"
        figures[f"seeds_at_{batch}"] = len(values)
    pairs = list(pairwise(accuracies))
    known = all(len(values) > 1 for values in accuracies)
    return tables.claim(
        "Q4.1-every-batch",
        figures,
        holds=known and all(larger.max() < smaller.min() for smaller, larger in pairs),
        fails=known and any(larger.min() > smaller.max() for smaller, larger in pairs),
        groups=groups,
    )


def _cells(tables: ClaimTables) -> list[Claim]:
    if tables["timing"].empty or tables["accuracy"].empty:
        return [tables.missing("Q4.1", "no_accuracy")]
    compared = learning.compare_batches(tables["timing"], tables["accuracy"])
    made = []
    for (recipe, strategy), rows in compared.groupby(["recipe", "strategy"], sort=False):
        name = f"{recipe}/{strategy}"
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if known.empty:
            made.append(tables.missing("Q4.1", "no_pair", name))
            continue
        large = row_at(known, known["global_batch_size"].idxmax())
        made.append(_cell(name, large, next(rows[rows["reference"]].itertuples()), tables))
    return made


def _cell(name: str, large: Any, small: Any, tables: ClaimTables) -> Claim:
    """That a cell with a large global batch is less accurate than a batch on one GPU."""
    quantity = large.difference_of
    value, other = getattr(large, quantity), getattr(small, quantity)
    ends = [getattr(row, f"{quantity}{end}") for row in (large, small) for end in ("_min", "_max")]
    repeated = large.within_spread is not None and pd.notna(large.within_spread)
    apart = repeated and not ranges_overlap(*ends)
    figures = {
        "global_batch_size": large.global_batch_size,
        quantity: value,
        f"reference_{quantity}": other,
        "seeds": large.seeds,
        "reference_seeds": small.seeds,
    }
    return tables.claim(
        "Q4.1",
        figures,
        name=name,
        holds=apart and value < other,
        fails=apart and value > other,
        quantity=quantity,
        value=value,
        other=other,
        large=large,
        small=small,
        repeated=repeated,
    )
