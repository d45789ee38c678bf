"""Datasets: where images come from and how they reach a device."""
