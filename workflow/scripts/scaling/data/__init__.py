"""Datasets: where images come from, and reading them."""
