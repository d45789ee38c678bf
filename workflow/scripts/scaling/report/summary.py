"""The summary of a study: sentences computed from its tables, each with where it comes from.

A sentence is never written ahead of its numbers: where a table lacks the evidence, it says so.
"""

from collections.abc import Callable

from scaling.report.finding import Finding
from scaling.report.findings_accuracy import large_batch_accuracy, quantization, recipes
from scaling.report.findings_communication import bandwidth, communication
from scaling.report.findings_limits import utilization
from scaling.report.findings_startup import fixed_cost
from scaling.report.findings_time import best_speedup, fastest, loading, outcome
from scaling.report.sections.audit import counts
from scaling.tables.schema import StudyTables


def audit(tables: StudyTables) -> Finding:
    """What the audit found."""
    found = counts(tables.audit)
    return Finding(f"The audit of these tables: {found}.", "audit.csv: all rows")


TOPICS: list[Callable[[StudyTables], Finding]] = [
    *(outcome, fastest, best_speedup, communication, loading, bandwidth, utilization),
    *(large_batch_accuracy, recipes, quantization, fixed_cost, audit),
]


def findings(tables: StudyTables) -> list[Finding]:
    """Every sentence of the summary, in the order of the report."""
    return [topic(tables) for topic in TOPICS]
