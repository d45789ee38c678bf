"""Strategies, recipes, models, datasets: a module for each."""
