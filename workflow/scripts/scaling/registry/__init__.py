"""Registries of strategies, recipes, models and datasets: one module for each entry."""
