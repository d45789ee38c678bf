"""The data of a user's own command: nothing is prepared, and nothing is known of it."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(name="own", read=Reference("scaling.launch.own_trainer:run"))
