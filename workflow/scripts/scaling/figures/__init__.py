"""Plots: a function that draws each."""
