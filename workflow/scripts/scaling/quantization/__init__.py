"""Int8 networks: made, run in integers, and taken apart."""
