"""The tutorial CNN, which the study quantizes; functions to save and load its weights."""

import io
from collections import OrderedDict
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import nn

from scaling.core import files
from scaling.core.errors import UserError

CLASSES = 10


def tutorial_cnn() -> nn.Sequential:
    """Return a CNN like LeNet with 62,006 parameters, from images [n, 3, 32, 32] to logits [n, 10].

    Every operation is a module, so that hooks can observe it and quantized layers can replace it.
    """
    return nn.Sequential(
        OrderedDict[str, nn.Module](
            conv1=nn.Conv2d(3, 6, 5),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(6, 16, 5),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(400, 120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, CLASSES),
        )
    )


def save_weights(network: nn.Module, target: Path) -> None:
    """Write the weights of `network` to `target` atomically. Equal weights give equal bytes."""
    # Given a path, torch.save writes the file's name, here a random one, into the archive.
    archive = io.BytesIO()
    torch.save({name: value.cpu() for name, value in network.state_dict().items()}, archive)
    with files.atomic_path(target) as temporary:
        temporary.write_bytes(archive.getvalue())


def load_weights(source: Path) -> nn.Sequential:
    """Return the tutorial CNN with the weights in file `source`, on the CPU, in evaluation mode.

    UserError if the file is missing or damaged, has another network, or has non-finite weights.
    """
    network = tutorial_cnn()
    try:
        network.load_state_dict(torch.load(source, map_location="cpu", weights_only=True))
    except (OSError, EOFError, RuntimeError, TypeError, AttributeError, UnpicklingError) as error:
        raise UserError(
            f"{source} is missing, damaged, or of another network than the tutorial CNN; train it "
            "with quantize.py"
        ) from error
    if not all(bool(value.isfinite().all()) for value in network.state_dict().values()):
        raise UserError(
            f"{source} holds weights that are infinite or not a number; "
            "train again with a lower --learning-rate"
        )
    return network.eval()
