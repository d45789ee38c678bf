"""Engines that train a model."""
