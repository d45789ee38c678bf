"""How many floating-point operations training costs, counted."""

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

# Batch normalisation refuses a single value per channel.
IMAGES = 2


def training_flops_per_image(model: nn.Module, image_shape: tuple[int, ...] = (3, 32, 32)) -> int:
    """Floating-point operations of one forward and backward pass of `model`, per image.

    `image_shape` is that of one input, without the batch. Counted are convolutions and matrix
    products, a multiplication and an addition as two, with the gradients of every parameter; the
    images themselves need no gradient. ResNet-18 for CIFAR costs 3.329e9. Nothing is computed:
    the pass runs on shapes alone (PyTorch's meta device), and `model` stays as it is.
    """
    shapes = {
        name: torch.empty_like(tensor, device="meta", requires_grad=tensor.requires_grad)
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    }
    images = torch.empty(IMAGES, *image_shape, device="meta")
    with FlopCounterMode(display=False) as counter:
        functional_call(model, shapes, (images,)).sum().backward()
    return counter.get_total_flops() // IMAGES
