"""Read the known ways to derive a wrong figure from right times: report/mistakes.yaml."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

Severity = Literal["error", "warning", "info"]
FILE = Path(__file__).parents[4] / "report/mistakes.yaml"


@dataclass(frozen=True)
class Mistake:
    """How grave it is, and what happened, to follow "the printed speedup …".

    `{rule}` in the sentence stands for the definition that gives the figure.
    """

    severity: Severity
    sentence: str


MISTAKES = {
    name: Mistake(**entry)
    for name, entry in yaml.safe_load(FILE.read_text(encoding="utf-8")).items()
}
