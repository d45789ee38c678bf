"""Terminal output: a study's size, progress, state and results."""
