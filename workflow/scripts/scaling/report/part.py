"""A part of a section: sentences computed from tables, tables, and what the study lacks for it."""

from dataclasses import dataclass, field

from scaling.report.table import Table


@dataclass(frozen=True)
class Part:
    """What a template shows below one heading, in this order; `lacking` is "" or a sentence."""

    sentences: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    lacking: str = ""
