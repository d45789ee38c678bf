"""Cells, records, files, the environment, numbers as text."""
