"""What a person reads in the terminal: a study's size, its progress, its state, its figures."""
