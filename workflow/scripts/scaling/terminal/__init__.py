"""Terminal output: a study's size, progress and results."""
