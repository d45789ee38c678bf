"""Experiments on what the ranks of one training share: image orders, messages, buffers."""
