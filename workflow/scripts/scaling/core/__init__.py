"""Grid cells, records, files, the environment, number formats."""
