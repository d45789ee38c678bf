"""Tables of the experiments apart from the grid."""
