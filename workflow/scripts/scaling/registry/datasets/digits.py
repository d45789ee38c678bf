"""scikit-learn's handwritten digits: real data without a download."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(name="digits", read=Reference("scaling.data.digits:read"))
