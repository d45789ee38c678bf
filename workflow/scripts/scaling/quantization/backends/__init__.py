"""Quantizers of other engines, measured beside ours."""
