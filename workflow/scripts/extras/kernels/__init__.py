"""Kernels of our own, in Triton: a ResNet's norms and what follows them."""
