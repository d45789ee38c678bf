"""Networks that can be quantized."""
