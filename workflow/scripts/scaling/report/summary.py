"""The summary of a study: sentences computed from its tables, each with where it comes from.

A sentence is never written ahead of its numbers: where a table lacks the evidence, it says so.
"""

from collections.abc import Callable

from scaling.finding import Finding
from scaling.findings_accuracy import large_batch_accuracy, quantization, recipes
from scaling.findings_communication import bandwidth, communication
from scaling.findings_limits import utilization
from scaling.findings_startup import fixed_cost
from scaling.findings_time import best_speedup, fastest, loading, outcome
from scaling.report_audit import counts
from scaling.result_tables import StudyTables


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
