"""What the audit looks at: the tables of one study, and what a check is."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from scaling.audit.finding import Finding
from scaling.published import printed
from scaling.tables import utilization


@dataclass(frozen=True)
class Study:
    """The tables under audit, and D: the number of images in the training set.

    `printed` is the table of `scaling.printed`, empty for a study that prints no figures;
    `utilization` that of `scaling.utilization`, empty for one without measured peaks.
    """

    timing: pd.DataFrame
    speedup: pd.DataFrame
    communication: pd.DataFrame
    bandwidth: pd.DataFrame
    train_images: int
    printed: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=printed.COLUMNS))
    utilization: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=utilization.COLUMNS)
    )


Check = Callable[[Study], list[Finding]]
