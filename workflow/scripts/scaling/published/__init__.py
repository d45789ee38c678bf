"""Studies that others printed, and how they derived their figures."""
