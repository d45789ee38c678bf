"""Whether an accuracy is as high as a reference's, by an interval of the difference."""

CLOSED, BEHIND, UNDECIDED = "within the margin", "behind", "undecided"
SAME = "the same runs"
"""Of a comparison of the reference with runs that are its own under another name."""


def gap(low: float, high: float, margin: float) -> str:
    """What the interval from `low` to `high` of accuracy minus the reference's tells.

    `CLOSED`: all of it is above -`margin`, so a loss that large is excluded (non-inferiority, as
    trials of treatments have it: guideline EMEA/CPMP/EWP/2158/99, 2005). `BEHIND`: all of it is
    below 0, and such a loss is not excluded. `UNDECIDED`: it contains both, or is not a number:
    that 0 is in an interval is no proof of equality.
    """
    if low > -margin:
        return CLOSED
    return BEHIND if high < 0 else UNDECIDED
