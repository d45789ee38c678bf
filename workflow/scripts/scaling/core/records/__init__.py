"""Schemas of the records of measurements, and how they are read and written."""
