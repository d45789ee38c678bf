"""Train a cell of the grid: recipes, strategies and steps."""
