"""Studies that others printed, and their formulas."""
