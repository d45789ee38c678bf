"""Communication, kernels, peaks and the link, measured."""
