"""Models of a user: some train, others cannot be compiled or are refused."""

import torch
from torch import nn


@torch.library.custom_op("own::nothing", mutates_args=())
def nothing(images: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(images)


@nothing.register_fake
def _(images):
    return images.new_empty(1)  # A shape that misleads a compiler.


class Uncompiled(nn.Module):
    def forward(self, images):
        return images * (1.0 if images.mean().item() < 9 else 2.0) + nothing(images.detach())


def plain(classes):
    return nn.Sequential(Uncompiled(), nn.Flatten(), nn.Linear(3072, 8), nn.Linear(8, classes))


class Looks(nn.Module):
    def forward(self, values):
        return values * (1.0 if values.abs().max().item() >= 0 else 2.0)


def convolution(classes, looks=False):
    """Return a network. Its steps can be captured unless it looks at values."""
    parts = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()]
    return nn.Sequential(*parts, *[Looks()] * looks, nn.Linear(128, classes))


def linear(classes, bias=True):
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, classes, bias=bias))


def text(classes):
    return "a network"


def ten(classes):
    return linear(10)


def lazy(classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))


def frozen(classes):
    return linear(classes).requires_grad_(False)


class Unused(nn.Sequential):
    def forward(self, values):
        return self[1](self[0](values))


def unused(classes):
    return Unused(*linear(classes), nn.Linear(2, 2))
