"""Times ResNet-18 on a GPU in bfloat16 and in int8: each layer's matrix product, and the network.

PyTorch has no int8 convolution for GPUs, so the whole network in int8 is that of `in_integers`: it
unfolds, multiplies and requantizes by kernels of their own. The products alone are what int8 tensor
cores would save where one kernel does it all.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from scaling.quantization.integers import as_rows, multiply, patches
from scaling.quantization.network import QuantizedLayer, in_integers, quantized_layers

BATCH = 1024
SECONDS = 0.2
"""Of calls for each figure, the median of which is taken."""


def _median(call: Callable[..., Any], *operands: Any) -> float:
    timer = Timer("call(*operands)", globals={"call": call, "operands": operands})
    return float(timer.blocked_autorange(min_run_time=SECONDS).median)


@torch.no_grad()
def measure(network: nn.Module, quantized: nn.Module, images: Tensor) -> list[dict[str, Any]]:
    """Time the layers of a `quantized` network and the float `network` that it is made from.

    A row for each layer, as the product of [patches, inner] and [inner, outputs] on what it
    receives of `images`, and one called network; seconds a call. `images` are on a GPU.
    """
    received: dict[QuantizedLayer, Tensor] = {}
    layers = quantized_layers(quantized).values()
    hooks = [
        layer.register_forward_pre_hook(lambda module, inputs: received.update({module: inputs[0]}))
        for layer in layers
    ]
    in_integers(quantized, images)
    for hook in hooks:
        hook.remove()
    found = []
    for layer in layers:
        values, weight = received.pop(layer), layer.rounded.weight.to(images.device, torch.int8)
        if layer.convolution is not None:
            kernel = tuple(weight.shape[2:])
            values = patches(values, kernel, **layer.convolution).flatten(0, 2)
            weight = as_rows(weight)
        floats, columns = values.bfloat16(), weight.bfloat16().T
        row = {"layer": layer.name, "patches": len(values), "inner": values.shape[1]}
        row |= {"outputs": len(weight), "int8_seconds": _median(multiply, values, weight)}
        found.append(row | {"bfloat16_seconds": _median(torch.matmul, floats, columns)})
    half = copy.deepcopy(network).bfloat16().to(memory_format=torch.channels_last)
    moved = images.to(torch.bfloat16, memory_format=torch.channels_last)
    seconds = {"int8_seconds": _median(in_integers, quantized, images)}
    seconds["bfloat16_seconds"] = _median(half, moved)
    return [*found, {"layer": "network", **seconds}]
