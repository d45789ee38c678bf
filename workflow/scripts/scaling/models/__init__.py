"""Networks and the kernels that train them."""
