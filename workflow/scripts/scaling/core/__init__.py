"""What every stage uses: cells, records, files, the environment, numbers as text."""
