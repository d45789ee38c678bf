"""Check that a study's model can be built, and trains on the smallest batch of the study."""

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
from scaling.models.build import LEAST_BATCH, build
from scaling.registry.strategy import STRATEGIES

CLASSES, IMAGES = 10, {"cifar10": 50_000, "digits": 1_500}
"""Of datasets that are not prepared yet: classes, but of the user's images, and training images."""


def check(config: dict[str, Any], manifest: Path) -> None:
    """Raise UserError if the model cannot be built, or cannot train in each cell of the study.

    It trains without values (on the meta device) or, if it depends on them, on the CPU: on 2 images
    or, where a cell's smallest batch has a single one, on that, which batch norm may refuse.
    """
    section, described = config["dataset"], DATASET.read(manifest) if manifest.exists() else {}
    known = IMAGES | {"synthetic": section["train_images"]}
    images = described.get("train_images", known.get(section["source"]))
    least, cell = min(_sizes(config, images), default=(0, ""))
    if not least:
        return
    size, side = min(least, LEAST_BATCH), section["image_size"]
    classes, chosen = len(described.get("classes", range(CLASSES))), Model(**config["model"])
    said = None
    for device in ("meta", "cpu"):
        try:
            with torch.device(device):
                model, batch = build(chosen, classes), torch.zeros(size, 3, side, side)
                said = next(_mistakes(model, batch, classes), None)
            break
        except UserError:
            raise
        except Exception as error:
            alone = f", {cell}" if size == least else ""
            said = (
                f"cannot train on {fmt.plural(size, 'image')} of {side} × {side} pixels{alone} "
                f"({' '.join(str(error).split())}): mend it, or set dataset.image_size, or "
                "grid.batch_sizes, to others"
            )
    if said:
        raise UserError(f"model {chosen.name} {said}")


def _sizes(config: dict[str, Any], images: int | None) -> Iterator[tuple[int, str]]:
    """Yield how many images, of so many in all, the model runs on at a time, and in which batch."""
    full, section = config["time_to_accuracy"], config["synchronization"]
    cells = [cell for cell in grid.of(config) if cell.strategy != "own"]
    cells += [Cell("tuned", "ddp", n, full["global_batch"] // n, 0) for n in full["gpus"]]
    if section["seeds"]:
        cells.append(Cell("plain", "ddp", max(config["grid"]["gpus"]), section["batch_size"], 0))
    into = config["training"]["micro_batches"]
    for cell in cells:
        if cell.global_batch_size > (images or math.inf) or cell.batch_size % into:
            continue  # Recorded as infeasible.
        processes = STRATEGIES.find(cell.strategy).processes(cell.gpus)
        batch = cell.global_batch_size // processes
        rest = math.ceil(images / processes) % batch if images else 0
        for size, name in ((batch, f"a batch of {cell}"), (rest, f"the last of {cell}")):
            for part in torch.empty(size).chunk(into) if size else ():
                yield from ((len(own), name) for own in part.chunk(cell.gpus // processes))


def _mistakes(model: nn.Module, images: torch.Tensor, classes: int) -> Iterator[str]:
    """Yield what is wrong with the model's parameters, its result, and its gradients."""
    parameters = dict(model.train().named_parameters())
    if lazy := [key for key, own in parameters.items() if is_lazy(own)]:
        yield f"has lazy parameters, {lazy[0]} the first: write layers with their sizes, as Linear"
    trained = {key: own for key, own in parameters.items() if own.requires_grad}
    if not trained:
        yield "has no parameter to train: set requires_grad of one to True"
    logits, wanted = model(images), (len(images), classes)
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != wanted:
        yield f"returns {shape}, where {wanted} is needed: see model.options"
    logits.sum().backward()
    if idle := [key for key, own in trained.items() if own.grad is None]:
        some = f"{len(idle)} of {len(trained)} parameters"
        yield f"gives {some} no gradient, {idle[0]} the first: use it always, or take it out"
