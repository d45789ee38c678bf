"""Audit studies by other authors; nothing in package `scaling` imports this package."""
