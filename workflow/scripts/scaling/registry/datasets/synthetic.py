"""Synthetic images in any number, for timing."""

from scaling.registry.dataset import Dataset
from scaling.registry.registry import Reference

ENTRY = Dataset(
    name="synthetic",
    read=Reference("scaling.data.synthetic:read"),
    options=("train_images", "test_images", "seed"),
)
