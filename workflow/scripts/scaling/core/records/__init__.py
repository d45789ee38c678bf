"""The records of measurements: what they hold, and how they are read and written."""
