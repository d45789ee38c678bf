"""Question 4.1: accuracy of large global batches after equal epochs."""

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, extremes, row_at
from scaling.claims.techniques import difference
from scaling.tables import accuracy as learning
from scaling.tables.noise import repeats_for_difference, repeats_for_seeds

QUANTITIES = ("test_accuracy", "train_accuracy")


def claims(tables: ClaimTables) -> list[Claim]:
    """Claim that the largest global batch learns less than the smallest.

    From remedies.csv, at the base rate; without it, from the timed cells' seeds.
    """
    table = tables["remedies"]
    rows = table[(table["options"] == "") & (table["factor"] == 1)].drop_duplicates("global_batch")
    if len(rows) < 2:
        return _cells(tables)
    small, large = extremes(rows, "global_batch")
    test, train = (difference(large, small, tables, of) for of in QUANTITIES)
    claim = tables.claim(
        "Q4.1-largest",
        holds=test.below and train.below,
        fails=test.above or train.above,
        ratios=[
            one
            for found in (test, train)
            if not found.below
            for one in repeats_for_difference(found)
        ],
        large=large,
        small=small,
        test_accuracy=test,
        train_accuracy=train,
    )
    return [claim]


def _cells(tables: ClaimTables) -> list[Claim]:
    """Claim that the largest global batch of each recipe and strategy is less accurate."""
    if tables["timing"].empty or tables["accuracy"].empty:
        return []
    compared = learning.compare_batches(tables["timing"], tables["accuracy"])
    made = []
    for (recipe, strategy), rows in compared.groupby(["recipe", "strategy"], sort=False):
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if len(known):
            large = row_at(known, known["global_batch_size"].idxmax())
            small = next(rows[rows["reference"]].itertuples())
            of, apart = large.difference_of, large.within_spread is False
            spreads, counts = (
                [getattr(row, f"{of}_{part}") for row in (large, small)]
                for part in ("std", "count")
            )
            claim = tables.claim(
                "Q4.1",
                f"{recipe}/{strategy}",
                holds=apart and large.difference < 0,
                fails=apart and large.difference > 0,
                ratios=[repeats_for_seeds(large.difference, spreads, counts)],
                of=of,
                large=large,
                small=small,
                seeds=min(counts),
            )
            made.append(claim)
    return made
