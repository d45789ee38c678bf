"""Sources of images to train on."""
