"""Experiments on what ranks send and share."""
