"""Measure communication, kernels, peak rates and the interconnect."""
