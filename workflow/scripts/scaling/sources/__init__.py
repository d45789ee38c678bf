"""Where images come from: one module for each source, all ending in an ImageDataset."""
