"""Where this process computes, on the one device it picked: the `environment` of its record."""

from typing import Any

import torch

from scaling.core import environment
from scaling.core.environment import Device


def describe(device: torch.device) -> dict[str, Any]:
    """What `scaling.environment` says of a run on `device`; of its GPUs the one that is `device`.

    A GPU is asked for its UUID: CUDA need not number the GPUs as their driver does.
    """
    kind: Device = "cuda" if device.type == "cuda" else "cpu"
    surroundings = environment.describe(kind)
    if kind == "cpu":
        return surroundings
    own = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    return surroundings | environment.leased_gpus([own]) | {"cuda": torch.version.cuda}
