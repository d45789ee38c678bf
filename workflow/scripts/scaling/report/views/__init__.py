"""Tables of the report: each is a function of its rows, below its title and quantities."""

from scaling.report.quantities import PARTS
from scaling.report.views import int8, learning, ledger, records, scaling, synchronization

__all__ = ["PARTS", "int8", "learning", "ledger", "records", "scaling", "synchronization"]
