"""What is measured beside epoch times: communication, kernels, peaks, the link."""
