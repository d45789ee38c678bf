"""Triton kernels that compute batch norm, residual addition and ReLU of a ResNet together."""
