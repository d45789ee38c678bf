"""Starting, watching and ending the processes of a measurement."""
