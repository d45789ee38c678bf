"""Registries of strategies, recipes, models and datasets: one module per entry."""
