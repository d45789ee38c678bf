"""One training run: its parameters, recipes and steps."""
