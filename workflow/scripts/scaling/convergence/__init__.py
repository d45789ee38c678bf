"""Training with large batches, a technique at a time."""
