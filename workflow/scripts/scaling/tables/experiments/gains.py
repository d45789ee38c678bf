"""What each technique gains over what differs from it in its own option alone, and the verdicts."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.core.statistics import bonferroni, judge
from scaling.tables.experiments.best_remedy import (
    base_rate,
    is_plain,
    plain_sweep,
    reference_epochs,
)
from scaling.tables.experiments.same_runs import difference, same_runs

COLUMNS = [
    *("compared_with", "compared_at_edge", "same_as_compared", "nothing_to_warm_up"),
    *("gain", "gain_low", "gain_high", "gain_high_to_refute", "confidence_to_refute", "helps"),
]
SWEPT, AT_BASE_RATE = "plain SGD with its rate swept alike", "plain SGD at the base rate"


@dataclass(frozen=True)
class _Pair:
    """The runs with and without a technique at a global batch; `row` is the label in remedies.csv.

    `base_rate` is that of plain SGD without a sweep.
    """

    row: Any
    own: pd.DataFrame
    plain: pd.DataFrame
    base_rate: float
    swept: bool

    @property
    def same(self) -> bool:
        return same_runs(self.own, self.plain)

    @property
    def own_edge(self) -> bool:
        return bool(self.own["at_edge"].eq(True).any())

    @property
    def plain_edge(self) -> bool:
        return self.swept and bool(self.plain["at_edge"].eq(True).any())

    @property
    def nothing_to_warm_up(self) -> bool:
        """Whether a warm-up is all that the technique adds, and its rate needs none."""
        own, plain = (_beside_scaling(runs["options"].iloc[0]) for runs in (self.own, self.plain))
        added = own - plain
        warms = len(added) == 1 and next(iter(added)).startswith("warmup_epochs ")
        low_rate = bool(self.own["learning_rate"].max() <= self.base_rate)
        return self.same and warms and plain < own and low_rate


def with_gains(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add `COLUMNS` to remedies.csv without them, from the runs of convergence.csv.

    Of each technique at equal epochs and each global batch above the reference: `gain` is the
    difference in mean test accuracy, a fraction, with and without it. A technique with a sweep is
    compared with plain SGD with a sweep, both at the rate with the least training loss; one
    without, and swept plain SGD itself, with plain SGD at the base rate. `gain_low` and
    `gain_high` are the 95 % interval (`same_runs.difference`), `gain_high_to_refute` is the upper
    end of that of `confidence_to_refute`, wide enough for the m global batches any of which may
    refute (`statistics.bonferroni`). Where both have the very same runs, `same_as_compared`, there
    is nothing to compare: such a batch is not one of the m.

    `helps` is the technique's verdict over all these batches. Supported: the 95 % interval is above
    0 at all of them, none has the same runs, and at none is plain SGD's best rate at an end of its
    sweep, beyond which plain SGD may be better. Refuted: the wide interval is below 0 at one where
    the technique's best rate is not at an end, beyond which the technique may be better. It is ""
    for what is no technique at equal epochs.
    """
    chosen = runs[runs["chosen"].eq(True)]
    reference = chosen[chosen["reference"].eq(True)]
    found: dict[Any, dict[str, Any]] = {}
    if len(reference):
        larger = table[table["global_batch"] > int(reference["global_batch"].iloc[0])]
        for name in _techniques(table):
            found |= _gains(larger[larger["remedy"] == name], chosen, table)
    columns = pd.DataFrame(
        [_NONE | found.get(row, {}) for row in table.index], index=table.index, columns=COLUMNS
    )
    return table.join(columns)


_NONE = {"compared_with": "", "helps": ""} | dict.fromkeys(COLUMNS[1:4], False)


def _techniques(table: pd.DataFrame) -> list[str]:
    """All but plain SGD at the base rate, and what trains for more epochs than the reference."""
    known = table[(table["options"] != "") | (table["rates"] > 1)]
    epochs = known.groupby("remedy", sort=False)["planned_epochs"].max()
    return [str(name) for name in epochs[epochs == reference_epochs(table)].index]


def _gains(
    rows: pd.DataFrame, chosen: pd.DataFrame, table: pd.DataFrame
) -> dict[Any, dict[str, Any]]:
    """The columns of one technique's rows, by their labels."""
    pairs = _pairs(rows, chosen, table)
    compared = [pair for pair in pairs if not pair.same]
    confidence = bonferroni(max(1, len(compared)))
    found, above, below = {}, [], []
    for pair in pairs:
        found[pair.row] = {
            "compared_with": SWEPT if pair.swept else AT_BASE_RATE,
            "compared_at_edge": pair.plain_edge,
            "same_as_compared": pair.same,
            "nothing_to_warm_up": pair.nothing_to_warm_up,
        }
    for pair in compared:
        gain = difference(pair.own, pair.plain, "test_accuracy")
        wide = difference(pair.own, pair.plain, "test_accuracy", confidence)
        above.append(gain.above and not pair.plain_edge)
        below.append(wide.below and not pair.own_edge)
        found[pair.row] |= {
            "gain": gain.mean,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "gain_high_to_refute": wide.high,
            "confidence_to_refute": confidence,
        }
    everywhere = 0 < len(compared) == len(pairs) and all(above)
    helps = judge(everywhere, any(below))
    return {row: found.get(row, {}) | {"helps": helps} for row in rows.index}


def _pairs(rows: pd.DataFrame, chosen: pd.DataFrame, table: pd.DataFrame) -> list[_Pair]:
    """The technique's runs and those that they are compared with, where there are both."""
    pairs = []
    for row in rows.itertuples():
        runs = chosen[chosen["global_batch"] == row.global_batch]
        own, base = runs[runs["remedy"] == row.remedy], base_rate(runs)
        swept = bool(rows["rates"].max() > 1 and not is_plain(str(row.options)))
        plain = base
        if swept:
            sweep = plain_sweep(table, int(row.global_batch))
            plain = runs[runs["remedy"] == sweep.remedy] if sweep else runs.iloc[:0]
        if len(own) and len(plain):
            pairs.append(_Pair(row.Index, own, plain, base["learning_rate"].max(), swept))
    return pairs


def _beside_scaling(options: str) -> set[str]:
    return {part for part in options.split(", ") if part and not part.startswith("scaling ")}
