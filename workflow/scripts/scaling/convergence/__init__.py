"""Convergence with large batches: remedies, trained in many runs on one device."""
