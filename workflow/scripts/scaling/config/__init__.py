"""The configuration, and studies kept as data."""
