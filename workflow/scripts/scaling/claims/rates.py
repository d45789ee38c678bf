"""Question 4.2: linear scaling taken at its word, and how the best rate grows with the batch."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.claims.techniques import figures_of, reference_runs
from scaling.tables.experiments.best_remedy import base_rate, plain_sweep, without_sweep


def claims(tables: ClaimTables) -> list[Claim]:
    """Two claims from convergence.csv and remedies.csv, none without a reference."""
    if reference_runs(tables).empty:
        return []
    return [_linear_rule(tables), _best_rate(tables)]


def _linear_rule(tables: ClaimTables) -> Claim:
    """That the rate k times as high diverges once k is large and updates are few."""
    runs = tables["convergence"]
    rows = runs[(runs["options"] == "scaling linear") & runs["remedy"].isin(without_sweep(runs))]
    rows = rows[rows["factor"] == 1]
    rows = rows[rows["global_batch"] > rows["global_batch"].min()]
    if rows.empty:
        return tables.missing("Q4.2-rule", "no_runs")
    groups = [(int(str(batch)), group) for batch, group in rows.groupby("global_batch")]
    counts = [(batch, int((each["diverged"] != "").sum()), len(each)) for batch, each in groups]
    failed = [batch for batch, lost, every in counts if lost == every]
    batch, group = next(each for each in groups if each[0] == (failed or [groups[-1][0]])[0])
    first = group.iloc[0]
    infinite = group[group["diverged"] == "not finite"]
    figures: dict[str, Any] = {
        "global_batch": batch,
        "learning_rate": first["learning_rate"],
        "planned_updates": first["planned_updates"],
        "updates": group["updates"].max(),
        "updates_per_epoch": first["updates_per_epoch"],
        "reference_updates": first["reference_updates"],
        "seeds": len(group),
        "diverged_seeds": int((group["diverged"] != "").sum()),
        **figures_of(group, "train_loss"),
        **figures_of(group, "test_accuracy"),
    }
    curve = _course(tables["loss_curves"], str(first["remedy"]), batch)
    return tables.claim(
        "Q4.2-rule",
        figures,
        holds=failed,
        fails=not any(lost for _, lost, _ in counts),
        shown={"loss_curves": curve} if curve else None,
        runs=group,
        epochs=first["planned_epochs"],
        infinite=len(infinite),
        first_infinite=int(infinite["diverged_update"].min()) if len(infinite) else None,
        learned=[size for size, lost, _ in counts if lost == 0],
        partly=[each for each in counts if 0 < each[1] < each[2]],
        curve=curve,
    )


def _course(curves: pd.DataFrame, technique: str, batch: int) -> dict[str, Any]:
    """How the training loss went, of the first seed; nothing where it is not known."""
    rows = curves[(curves["remedy"] == technique) & (curves["global_batch"] == batch)]
    rows = rows[rows["train_loss"].notna()]
    if rows.empty:
        return {}
    highest = row_at(rows, rows["train_loss"].idxmax())
    return {
        "first_loss": rows["train_loss"].iloc[0],
        "highest_loss": highest.train_loss,
        "highest_at_update": highest.update,
        "last_loss": rows["train_loss"].iloc[-1],
    }


@dataclass(frozen=True)
class _Best:
    """The best swept rate at a global batch, and how far half a step of the sweep reaches."""

    batch: int
    rate: float
    low: float
    high: float


def _best_rate(tables: ClaimTables) -> Claim:
    """That it grows more slowly than the batch; linear scaling lets it grow alike."""
    size = int(reference_runs(tables)["global_batch"].iloc[0])
    inside, ends = _best_rates(tables)
    if len(inside) < 2 or inside[0].batch != size:
        return tables.missing("Q4.2-best-rate", "few_rates", size=size, ends=ends)
    small, large = inside[0], inside[-1]
    low = _exponent(small, large, small.high, large.low)
    high = _exponent(small, large, small.low, large.high)
    rate = float(base_rate(tables["convergence"])["learning_rate"].max())
    return tables.claim(
        "Q4.2-best-rate",
        {
            "exponent": _exponent(small, large, small.rate, large.rate),
            "exponent_low": low,
            "exponent_high": high,
            **{f"best_rate_at_{best.batch}": best.rate for best in inside},
        },
        holds=high < 1,
        fails=low >= 1,
        inside=inside,
        ends=ends,
        base_rate=rate,
        above=[best for best in inside if best.high < rate] if small.high < rate else [],
    )


def _best_rates(tables: ClaimTables) -> tuple[list[_Best], list[Any]]:
    """Those inside their sweeps by ascending global batch, and the rows of those at an end."""
    table, runs = tables["remedies"], tables["convergence"]
    inside, ends = [], []
    for batch in sorted(int(batch) for batch in table["global_batch"].unique()):
        row = plain_sweep(table, batch)
        if row is None or row.diverged_seeds:
            continue
        if row.at_edge:
            ends.append(row)
            continue
        tried = runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == batch)]
        rates = tried["learning_rate"]
        below, above = rates[rates < row.learning_rate].max(), rates[rates > row.learning_rate]
        steps = [math.sqrt(row.learning_rate * next_to) for next_to in (below, above.min())]
        inside.append(_Best(batch, row.learning_rate, *steps))
    return inside, ends


def _exponent(small: _Best, large: _Best, first: float, second: float) -> float:
    return math.log(second / first) / math.log(large.batch / small.batch)
