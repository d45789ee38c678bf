"""Training with large batches, a variant at a time."""
