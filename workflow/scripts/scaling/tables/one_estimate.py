"""One estimate of the communication for all cells of a study, so that they can be compared."""

import pandas as pd

from scaling.tables.communication import SUBTRACTIONS

LINE = ["recipe", "strategy"]


def by_one_estimate(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one estimate by subtraction for each recipe and strategy of `table`.

    `table` is one of communication or of bandwidths. Subtraction is the only estimate that every
    study has: that without loading where each cell that has one of whole epochs has it too, so
    that both T(N,b) and T(1,b) were measured without loading; else that of whole epochs.
    """
    whole, without = SUBTRACTIONS
    known = table.dropna(subset="communication_seconds")
    cells = known.groupby([*LINE, "estimate"]).size().unstack(fill_value=0)
    cells = cells.reindex(columns=[whole, without], fill_value=0)
    apart = (cells[without] > 0) & (cells[without] >= cells[whole])
    lines = table[LINE].merge(apart.rename("apart").reset_index(), how="left", on=LINE)
    chosen = lines["apart"].eq(True).map({True: without, False: whole}).to_numpy()
    return table[table["estimate"].to_numpy() == chosen]
