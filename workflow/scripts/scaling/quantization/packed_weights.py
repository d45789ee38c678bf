"""Integer weights of 2 to 8 bits as bytes, without a gap between them."""

import numpy as np
import torch
from torch import Tensor

WORD_BYTES = 4
"""Of an int32 bias, of a scale, and of a requantization's multiplier (22 bits) with its shift."""


def pack(weight: Tensor, bits: int) -> bytes:
    """The integers of `weight` in order, `bits` each in two's complement, zero bits at the end."""
    values = weight.flatten().cpu().numpy().astype(np.uint8)
    each = np.unpackbits(values[:, np.newaxis], axis=1)[:, -bits:]
    return np.packbits(each).tobytes()


def unpack(packed: bytes, bits: int, shape: tuple[int, ...]) -> Tensor:
    """What `pack` was given, int8 of that `shape`."""
    count = int(np.prod(shape))
    loose = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=count * bits)
    each = loose.reshape(count, bits)
    # The sign bit fills the byte.
    whole = np.concatenate([np.repeat(each[:, :1], 8 - bits, axis=1), each], axis=1)
    values = np.packbits(whole, axis=1).view(np.int8)
    return torch.from_numpy(values.reshape(shape).copy())


def layer_bytes(weight: Tensor, bits: int, scales: int) -> int:
    """Bytes of a layer: packed weights, an int32 bias for each output, and its `scales`."""
    return len(pack(weight, bits)) + WORD_BYTES * (len(weight) + scales)
