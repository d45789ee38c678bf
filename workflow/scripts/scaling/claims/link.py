"""Question 3.2: how much of the link between the GPUs is used."""

import pandas as pd

from scaling import noise
from scaling import report_format as fmt
from scaling.claims.cells import row_at
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.finding import measured
from scaling.result_tables import by_configuration

QUESTION = "Q3.2"
HALF = 0.5
USED = (
    "Bandwidth over the peak measured on the same GPUs, in every cell on the most GPUs and by "
    "every estimate but subtraction of whole epochs (it takes loading for communication) and but "
    "those within noise or above 100 %, which are no communication times. Supported: all below "
    "half; refuted: all at half or above; undecided: on both sides, or none is left."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim for each recipe and strategy on several GPUs, from bandwidth.csv."""
    made = [
        _half_idle(f"Q3.2-link-{recipe}-{strategy}", f"{recipe}/{strategy}", rows, tables)
        for recipe, strategy, rows in by_configuration(tables["bandwidth"])
    ]
    if made:
        return made
    lacks = (
        "How much of the link is used cannot be said: the study has no cell on several GPUs, so "
        "nothing travels."
    )
    return [undecided("Q3.2", QUESTION, lacks, tables.file("bandwidth"), USED)]


def _half_idle(id: str, name: str, rows: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That communication leaves more than half of the measured peak unused."""
    file = tables.file("bandwidth")
    rows = rows[(rows["gpus"] == rows["gpus"].max()) & (rows["estimate"] != "subtraction")]
    known = measured(rows, "utilization")
    if known.empty:
        why = (
            "no communication time is above 0"
            if measured(rows, "peak_gb_per_s").size
            else "the interconnect was not measured on as many GPUs"
        )
        lacks = f"{name}: how much of the link is used cannot be said, as {why}."
        return undecided(id, QUESTION, lacks, file, USED)
    cells = noise.with_resolution(known, tables["timing"])
    clear = cells[~cells["within_noise"] & (cells["utilization"] <= 1)]
    left_out = len(cells) - len(clear)
    if clear.empty:
        lacks = (
            f"{name}: how much of the link is used cannot be said, as each of "
            f"{fmt.plural(len(cells), 'estimate')} is within noise or above 100 % of the peak."
        )
        return undecided(id, QUESTION, lacks, file, USED)
    low, high = clear["utilization"].min(), clear["utilization"].max()
    best = row_at(clear, clear["utilization"].idxmax())
    below, above = bool(high < HALF), bool(low >= HALF)
    word = "less than half" if below else "half or more" if above else "not surely less than half"
    ends = fmt.percent(low), fmt.percent(high)
    cells_read = fmt.plural(clear["batch_size"].nunique(), "cell")
    more = f"; {left_out} more within noise or above 100 % are left out" if left_out else ""
    sentence = (
        f"{name} on {fmt.gpus(int(best.gpus))}: {word} of the link is used while gradients "
        f"travel, {ends[0] if low == high else ' to '.join(ends)} of the "
        f"{fmt.significant(best.peak_gb_per_s)} GB/s measured "
        f"({fmt.plural(len(clear), 'estimate')} of {cells_read}{more}). At most "
        f"{fmt.significant(best.bandwidth_gb_per_s)} GB/s, by {fmt.estimate(best.estimate)}: "
        f"{fmt.cell_name(best)}."
    )
    figures = {
        "estimates": len(clear),
        "left_out": left_out,
        "utilization_min": low,
        "utilization_max": high,
        "bandwidth_gb_per_s": best.bandwidth_gb_per_s,
        "peak_gb_per_s": best.peak_gb_per_s,
        "estimate": best.estimate,
        "cell": fmt.cell_name(best),
    }
    return Claim(id, QUESTION, sentence, judge(below, above), [Evidence(file, figures, USED)])
