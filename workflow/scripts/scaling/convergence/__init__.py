"""Experiments on training with large batches."""
