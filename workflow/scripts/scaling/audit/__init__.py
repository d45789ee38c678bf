"""Checks of what cannot be right in a study."""
