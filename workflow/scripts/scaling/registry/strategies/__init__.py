"""Strategies: how to spread the training of one model over several GPUs."""
