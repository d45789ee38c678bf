"""Tables of the experiments beside the grid."""
