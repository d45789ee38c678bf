"""Registries of strategies, recipes, models and datasets."""
