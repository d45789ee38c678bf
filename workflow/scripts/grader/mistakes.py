"""The mistakes of mistakes.yaml: what happened, what to do about it, and formulas that tell it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SEVERITIES = ["error", "warning", "info"]


@dataclass(frozen=True)
class Mistake:
    """How grave it is, what happened, what to do about it, and the formulas that tell it.

    `formulas` has (rule, formula) for each way to take a part or a quantity wrongly; `when` the
    columns in which a formula sees it.
    """

    severity: str
    sentence: str
    advice: str
    formulas: dict[str, list[tuple[str, str]]]
    when: dict[str, str] = field(default_factory=dict)
    found: str = ""
    expected: str = ""

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Mistake":
        """The mistake of an entry of mistakes.yaml."""
        severity = next(name for name in SEVERITIES if name in entry)
        sentence, _, advice = entry.pop(severity).partition(". ")
        others = {name: entry.pop(name) for name in ("when", "found", "expected") if name in entry}
        formulas = {
            key: [
                (str(rule or formula), formula)
                for rule, each in (ways if isinstance(ways, dict) else {"": ways}).items()
                for formula in ([each] if isinstance(each, str) else each)
            ]
            for key, ways in entry.items()
        }
        return cls(severity, sentence, advice, formulas, **others)


MISTAKES = {
    name: Mistake.of(entry)
    for name, entry in yaml.safe_load(
        Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8")
    ).items()
}
