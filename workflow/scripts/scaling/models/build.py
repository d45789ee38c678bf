"""Build a study's model with initial weights."""

import inspect

from torch import nn

from scaling.core.errors import UserError
from scaling.core.training_options import Model
from scaling.registry.model import MODELS
from scaling.registry.registry import resolved

LEAST_BATCH = 2
"""Minimum batch size: batch norm refuses a single value per channel."""


def build(chosen: Model, classes: int) -> nn.Module:
    """Build the `chosen` model, for so many classes.

    Its name is that of a registered model, a classification model of torchvision, or a function,
    `file.py:function` or `module:function`, that takes the number of classes. The last two receive
    its options too. Raises UserError for an unknown name, for arguments that the function does
    not take, and for a result that is no network.
    """
    name, given = chosen.name, chosen.options
    if name in MODELS.names():
        if given:
            raise UserError(f"model.options are {given}, and {name} has none: leave them out")
        model = MODELS.find(name).factory.load()(chosen.width, classes)
    elif ":" in name:
        model = _called(name, resolved(name), (classes,), given)
    else:
        from torchvision import models

        known = models.list_models(models)
        if name not in known:
            raise UserError(
                f"model.name is {name!r} (allowed: {', '.join(MODELS.names())}; a classification "
                "model of torchvision, as resnet50 or vit_b_16; file.py:function of your own)"
            )
        model = _called(name, models.get_model_builder(name), (), given | {"num_classes": classes})
    if not isinstance(model, nn.Module):
        raise UserError(f"{name} returned {type(model).__name__}, where an nn.Module is needed")
    return model


def _called(name: str, function: object, positional: tuple[int, ...], named: dict) -> object:
    """Call `function`; UserError if it rejects these arguments."""
    if not callable(function):
        raise UserError(f"{name} is no function")
    try:
        inspect.signature(function).bind(*positional, **named)
        return function(*positional, **named)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"model {name} cannot be made with {named or positional}: {error}"
        ) from error
