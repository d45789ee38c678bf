"""Tables of the report: each is a function of its rows, below its title and quantities."""

from scaling.report.quantities import PARTS as PARTS
from scaling.report.views import int8, learning, ledger, scaling

MODULES = (int8, learning, ledger, scaling)
"""All of them add to `PARTS`, in the order of their names."""
