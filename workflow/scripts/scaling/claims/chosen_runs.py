"""The runs that claims on remedies compare: of the reference, and of a row of remedies.csv."""

from typing import Any

import pandas as pd

from scaling.claims.claim_tables import ClaimTables


def runs_of(tables: ClaimTables, row: Any) -> pd.DataFrame:
    """The runs of all seeds that a row of remedies.csv stands for."""
    runs = tables["convergence"]
    same = (runs["remedy"] == row.remedy) & (runs["global_batch"] == row.global_batch)
    return runs[same & runs["chosen"].eq(True)]


def reference_runs(tables: ClaimTables) -> pd.DataFrame:
    """The runs of all seeds that every other is compared with: plain SGD at the reference batch."""
    runs = tables["convergence"]
    return runs[runs["reference"].eq(True) & runs["chosen"].eq(True)]


def margin(tables: ClaimTables) -> float:
    """The loss of accuracy, a fraction, that has to be excluded before a gap is closed."""
    return float(tables["remedies"]["accuracy_margin"].iloc[0])
