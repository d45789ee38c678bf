"""One training run: its recipes, strategies and steps."""
