"""Shared basics: grid cells, records, files, the environment, number formatting."""
