"""Compute the tables of a study from its records."""
