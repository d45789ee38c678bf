"""What follows from the times of any study, measured or published."""

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class DerivedTables:
    """The tables that every study has, as `result_tables.read` returns them."""

    study: str
    timing: pd.DataFrame
    speedup: pd.DataFrame
    communication: pd.DataFrame
    bandwidth: pd.DataFrame
    audit: pd.DataFrame
    prediction: pd.DataFrame
    cost_model: pd.DataFrame
