"""Triton kernels for a ResNet's batch norms, fused with residual and ReLU."""
