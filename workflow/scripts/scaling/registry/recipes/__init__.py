"""Ways to train a model."""
