"""Studies that others printed or hand in, audited: all of it can be deleted."""
