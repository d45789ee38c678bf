"""Check that a study's model can be built, and can train on the study's smallest batch."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from scaling.config import config as configuration
from scaling.core import grid
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Model
from scaling.models.build import LEAST_BATCH, build
from scaling.registry.strategy import STRATEGIES

CLASSES = 10
"""Number of classes to assume if the dataset does not exist yet."""


def check(config: dict[str, Any], manifest: Path) -> None:
    """Raise UserError if the model cannot be built, or cannot train on the study's smallest batch.

    The check trains one step on 2 images, or on 1 image if the smallest batch is 1 (which batch
    norm may reject). The step runs on the meta device, which computes no values. If the step fails
    there, it runs on the CPU.
    """
    section, described = config["dataset"], DATASET.read(manifest) if manifest.exists() else {}
    images = configuration.train_images(config, described)
    least, cell = min(_sizes(config, images), default=(0, ""))
    if not least:
        return
    size, side, reason = min(least, LEAST_BATCH), section["image_size"], ""
    classes, chosen = len(described.get("classes", range(CLASSES))), Model(**config["model"])
    for device in ("meta", "cpu"):
        try:
            with torch.device(device):
                _train(build(chosen, classes), torch.zeros(size, 3, side, side), classes)
            return
        except UserError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
    alone = f", {cell}" if size == least else ""
    raise UserError(
        f"model {chosen.name} fails on {fmt.plural(size, 'image')} of {side} × {side} "
        f"pixels{alone} ({reason}): fix it, or change model.options, dataset.image_size or "
        "grid.batch_sizes"
    )


def _sizes(config: dict[str, Any], images: int | None) -> Iterator[tuple[int, str]]:
    """Yield the batch size and a description of each forward pass in the study's runs.

    Sizes of last batches depend on `images`, the number of training images (None: leave them out).
    """
    full, on = config["time_to_accuracy"], config["parts"]
    cells = [cell for cell in grid.of(config) if "command" not in config["recipes"][cell.recipe]]
    for n in full["gpus"] if "time_to_accuracy" in on else ():
        cells.append(Cell("tuned", "ddp", n, full["global_batch"] // n, 0))
    if "proofs" in on:
        size = config["synchronization"]["batch_size"]
        cells.append(Cell("plain", "ddp", max(config["grid"]["gpus"]), size, 0))
    into = config["training"]["micro_batches"]
    for cell in cells:
        if cell.global_batch_size > (images or math.inf) or cell.batch_size % into:
            continue  # The record says infeasible.
        processes = STRATEGIES.find(cell.strategy).processes(cell.gpus)
        batch = cell.global_batch_size // processes
        rest = math.ceil(images / processes) % batch if images else 0
        for size, name in ((batch, f"a batch of {cell}"), (rest, f"the last of {cell}")):
            for part in torch.empty(size).chunk(into) if size else ():
                yield from ((len(share), name) for share in part.chunk(cell.gpus // processes))


def _train(model: nn.Module, images: torch.Tensor, classes: int) -> None:
    """Train one step. ValueError if the logits' shape is wrong or a parameter gets no gradient.

    Errors in PyTorch and in the model are not caught.
    """
    parameters, wanted = dict(model.train().named_parameters()), (len(images), classes)
    # Only a lazy parameter cannot tell how many values it has.
    trained = [key for key, one in parameters.items() if one.numel() and one.requires_grad]
    logits = model(images)
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != wanted:
        raise ValueError(f"it returns {shape}, where {wanted} is needed")
    logits.sum().backward()
    if idle := [key for key in trained if parameters[key].grad is None]:
        some = f"{len(idle)} of {len(trained)} parameters"
        raise ValueError(f"it gives {some} no gradient, {idle[0]} the first")
