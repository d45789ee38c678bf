"""A cost model of an epoch, what it predicts, and how far off it is where it was not fitted."""
