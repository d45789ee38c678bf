"""Networks and their training kernels."""
