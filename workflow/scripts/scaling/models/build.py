"""Build a study's model by name, find its repeated blocks, and report torch.compile's work."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from scaling.core.errors import UserError
from scaling.core.training_options import Model
from scaling.registry.entries import MODELS
from scaling.registry.registry import resolved

LEAST_BATCH = 2
"""Minimum batch size: in training, batch norm rejects a batch with one value per channel."""


def build(chosen: Model, classes: int) -> nn.Module:
    """Return the model that `chosen` names, with initial weights, for `classes` classes.

    `chosen.name` is a registered model, a classification model of torchvision, or a function of the
    number of classes, as `file.py:function` or `module:function`. `chosen.options` are its keyword
    arguments. UserError for an unknown name. Errors in the model's code are not caught.
    """
    name, given, sizes = chosen.name, chosen.options, [classes]
    make: Any
    if name in MODELS.names():
        make, sizes = MODELS.find(name).factory.load(), [chosen.width, classes]
    elif ":" in name:
        make = resolved(name)
    else:
        from torchvision import models

        if name not in models.list_models(models):
            raise UserError(
                f"model.name is {name!r} (allowed: {', '.join(MODELS.names())}; a classification "
                "model of torchvision, as resnet50 or vit_b_16; file.py:function of your own)"
            )
        make, sizes, given = models.get_model_builder(name), [], given | {"num_classes": classes}
    model: nn.Module = make(*sizes, **given)
    return model


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return the repeated blocks of a network, such as residual blocks or transformer blocks.

    A block has child modules, and the network has at least two modules of its class, which is not
    from torch.nn. Blocks inside another block are not returned.
    """
    classes = Counter(type(module) for module in model.modules())

    def search(module: nn.Module) -> Iterator[nn.Module]:
        for child in module.children():
            is_ours = not type(child).__module__.startswith("torch.nn")
            if is_ours and classes[type(child)] > 1 and any(child.children()):
                yield child
            else:
                yield from search(child)

    return list(search(model))


def cache_use() -> dict[str, int]:
    """Return how many graphs torch.compile read from its cache (`kept`) and compiled (`made`)."""
    if "torch._dynamo.utils" not in sys.modules:
        return {"kept": 0, "made": 0}
    counts = torch._dynamo.utils.counters["aot_autograd"]
    compiled = counts["autograd_cache_miss"] + counts["autograd_cache_bypass"]
    return {"kept": counts["autograd_cache_hit"], "made": compiled}


def compile_seconds() -> float:
    """Return the total seconds that torch.compile has taken in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return float(utils.calculate_time_spent()["total_wall_time"]) if utils else 0.0
