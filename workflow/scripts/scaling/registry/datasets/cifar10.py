"""CIFAR-10 as published."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(
    name="cifar10",
    read=Reference("scaling.data.cifar10:read"),
    options=("path", "mirror_url", "download_attempts"),
)
