"""The user's image files."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(
    name="images", read=Reference("scaling.data.images:read"), options=("path",), needs_path=True
)
