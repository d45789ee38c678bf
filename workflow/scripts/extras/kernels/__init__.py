"""Triton kernels of the project for a ResNet's batch norms with residual and ReLU."""
