"""Figures, one drawing function each."""
