"""A user's own training command as a cell of the grid."""
