"""Check that a study's model can be built, and trains on batches of all sizes of the study."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from scaling.core import grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Model
from scaling.models.build import build
from scaling.registry.strategy import STRATEGIES

CLASSES, IMAGES = 10, {"cifar10": 50_000, "digits": 1_500}
"""Of datasets that are not prepared yet: classes, but of the user's images, and training images."""
MOST_PIXELS_ON_CPU = 2**18
"""The largest batch but the smallest that is tried with values."""


def check(config: dict[str, Any], manifest: Path) -> None:
    """Raise UserError if the model cannot be built, or cannot train in each cell of the study.

    It runs on the meta device, without values, on each size of batch; a model that depends on
    values runs on the CPU, on small ones.
    """
    section, described = config["dataset"], DATASET.read(manifest) if manifest.exists() else {}
    known = IMAGES | {"synthetic": section["train_images"]}
    sizes = _sizes(config, described.get("train_images", known.get(section["source"])))
    if not sizes:
        return
    model = Model(**config["model"])
    classes = len(described.get("classes", range(CLASSES)))
    for device in ("meta", "cpu"):
        with torch.device(device):
            try:
                said = next(_mistakes(build(model, classes), sizes, section["image_size"], classes))
            except StopIteration:
                return
            except UserError:
                raise
            except Exception as error:  # It may depend on values.
                said = f"cannot be built ({error!r})"
            else:
                break
    raise UserError(f"model {model.name} {said}")


def _sizes(config: dict[str, Any], images: int | None) -> dict[int, str]:
    """Return the sizes of batches that the model is run on, in order, and a cell with each.

    Of `images` the last batch of an epoch may be smaller.
    """
    full, section = config["time_to_accuracy"], config["synchronization"]
    cells = [cell for cell in grid.of(config) if cell.strategy != "own"]
    cells += [Cell("tuned", "ddp", n, full["global_batch"] // n, 0) for n in full["gpus"]]
    if section["seeds"]:
        cells.append(Cell("plain", "ddp", max(config["grid"]["gpus"]), section["batch_size"], 0))
    found: dict[int, str] = {}
    into = config["training"]["micro_batches"]
    for cell in cells:
        processes = STRATEGIES.find(cell.strategy).processes(cell.gpus)
        batch = cell.global_batch_size // processes
        rest = math.ceil(images / processes) % batch if images else 0
        if cell.global_batch_size > (images or math.inf) or cell.batch_size % into:
            continue  # Recorded as infeasible.
        for size, name in ((batch, f"a batch of {cell}"), (rest, f"the last of {cell}")):
            for part in _parts(size, into):
                for own in _parts(part, cell.gpus // processes):
                    found.setdefault(own, name)
    return dict(sorted(found.items()))


def _parts(size: int, into: int) -> set[int]:
    """Return the sizes of the parts that torch.chunk makes."""
    part = math.ceil(size / into)
    return {part, size % part} - {0} if size else set()


def _mistakes(model: nn.Module, sizes: dict[int, str], side: int, classes: int) -> Iterator[str]:
    """Yield what is wrong with the model's parameters, its results for each size, its gradients.

    Raises the error of the first batch on the meta device.
    """
    parameters = dict(model.train().named_parameters())
    if lazy := [key for key, own in parameters.items() if is_lazy(own)]:
        yield (
            f"has lazy parameters, {lazy[0]} the first, whose sizes are not known before it runs: "
            "write layers with their sizes, as Linear for LazyLinear"
        )
    trained = {key: own for key, own in parameters.items() if own.requires_grad}
    if not trained:
        yield "has no parameter to train: set requires_grad of one to True"
    for place, size in enumerate(sizes):
        images = torch.zeros(size, 3, side, side)
        if place and not images.is_meta and size * side**2 > MOST_PIXELS_ON_CPU:
            break
        try:
            with torch.set_grad_enabled(place == 0):
                logits = model(images)
        except Exception as error:
            if images.is_meta and place == 0:
                raise
            yield (
                f"cannot train on {fmt.plural(size, 'image')} of {side} × {side} pixels, "
                f"{sizes[size]} ({' '.join(str(error).split())}): set dataset.image_size, or "
                "grid.batch_sizes, to others"
            )
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        if shape != (size, classes):
            yield (
                f"returns {shape} for {size} images of {classes} classes, where ({size}, "
                f"{classes}) is needed: see model.options"
            )
        if place == 0:
            logits.sum().backward()
            if idle := [key for key, own in trained.items() if own.grad is None]:
                yield (
                    f"gives {len(idle)} of {len(trained)} parameters no gradient, {idle[0]} the "
                    "first: use it in every forward pass, or take it out"
                )
