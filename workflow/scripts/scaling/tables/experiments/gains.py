"""The accuracy gain of each technique over a training without it, and the verdicts."""

from typing import Any

import pandas as pd

from scaling.core.statistics import CONFIDENCE, bonferroni, judge
from scaling.tables.experiments.best_remedy import (
    base_rate,
    is_plain,
    plain_sweep,
    reference_epochs,
)
from scaling.tables.experiments.same_runs import difference, same_runs
from scaling.tables.schema import rows_of

COLUMNS = [
    *("compared_with", "compared_at_edge", "same_as_compared"),
    *("gain", "gain_low", "gain_high", "gain_high_to_refute", "confidence_to_refute", "helps"),
]
NONE = {"compared_with": "", "helps": ""} | dict.fromkeys(COLUMNS[1:3], False)
SWEPT, AT_BASE_RATE = "plain SGD with its rate swept alike", "plain SGD at the base rate"


def with_gains(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add `COLUMNS` to remedies.csv, from the runs of convergence.csv.

    For each technique at equal epochs and each global batch above the reference: `gain` is the
    difference in mean test accuracy, a fraction, with and without it. A technique with a learning
    rate sweep is compared with swept plain SGD, each at its best rate; a technique without one, and
    swept plain SGD itself, is compared with plain SGD at the base rate. `gain_low` and `gain_high`
    are the 95 % interval (`same_runs.difference`); `gain_high_to_refute` is the upper end at
    `confidence_to_refute`, for m global batches any of which may refute (`statistics.bonferroni`).
    If both have the same runs, `same_as_compared` is True, and the batch does not count among the
    m.

    `helps` is the technique's verdict over all these batches. Supported: the 95 % interval is above
    0 at all of them, none has the same runs, and plain SGD's best rate is never at an end of its
    sweep, where plain SGD might be better still. Refuted: the wide interval is below 0 at one of
    them where the technique's best rate is not at an end. It is "" for anything else than a
    technique at equal epochs.
    """
    chosen = runs[runs["chosen"].eq(True)]
    reference = chosen[chosen["reference"].eq(True)]
    larger = table[table["global_batch"] > reference["global_batch"].max()]
    # All but plain SGD at the base rate and trainings longer than the reference.
    known = table[(table["options"] != "") | (table["rates"] > 1)]
    epochs = known.groupby("remedy", sort=False)["planned_epochs"].max()
    found: dict[Any, dict[str, Any]] = {}
    for name in epochs[epochs == reference_epochs(table)].index:
        found |= _gains(larger[larger["remedy"] == name], chosen, table)
    rows = [NONE | found.get(row, {}) for row in table.index]
    return table.join(pd.DataFrame(rows, index=table.index, columns=COLUMNS))


def _gains(
    rows: pd.DataFrame, chosen: pd.DataFrame, table: pd.DataFrame
) -> dict[Any, dict[str, Any]]:
    """Return the columns of one technique's rows, by their labels."""
    found: dict[Any, dict[str, Any]] = {}
    pairs = {}
    swept = rows["rates"].max() > 1 and not rows["options"].map(is_plain).any()
    for row in rows_of(rows):
        runs = chosen[chosen["global_batch"] == row.global_batch]
        own, base = runs[runs["remedy"] == row.remedy], base_rate(runs)
        sweep = plain_sweep(table, int(row.global_batch)) if swept else None
        plain = runs[runs["remedy"] == (sweep.remedy if sweep else None)] if swept else base
        if own.empty or plain.empty:
            continue
        same, at_edge = same_runs(own, plain), swept and bool(plain["at_edge"].eq(True).any())
        found[row.Index] = {
            "compared_with": SWEPT if swept else AT_BASE_RATE,
            "compared_at_edge": at_edge,
            "same_as_compared": same,
        }
        if not same:
            pairs[row.Index] = own, plain, at_edge
    confidence = bonferroni(max(1, len(pairs)))
    above, below = [], []
    for row, (own, plain, at_edge) in pairs.items():
        gain, wide = (
            difference(own, plain, "test_accuracy", level) for level in (CONFIDENCE, confidence)
        )
        above.append(gain.above and not at_edge)
        below.append(wide.below and not own["at_edge"].eq(True).any())
        found[row] |= {
            "gain": gain.mean,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "gain_high_to_refute": wide.high,
            "confidence_to_refute": confidence,
        }
    helps = judge(0 < len(pairs) == len(found) and all(above), any(below))
    return {row: found.get(row, {}) | {"helps": helps} for row in rows.index}
