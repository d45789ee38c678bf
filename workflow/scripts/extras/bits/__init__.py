"""Int8 beyond the lab: a ResNet-18."""
