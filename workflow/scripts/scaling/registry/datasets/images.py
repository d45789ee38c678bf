"""Image files of the user's own."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(
    name="images",
    fetch=Reference("scaling.data.images:fetch"),
    read=Reference("scaling.data.images:read"),
    takes_path=True,
)
