"""CIFAR-10 as published."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(
    name="cifar10",
    fetch=Reference("scaling.data.cifar10:fetch"),
    read=Reference("scaling.data.cifar10:read"),
    takes_path=True,
    downloads=True,
)
