"""What each layer receives on calibration images, in a float network and in its quantized copy."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from scaling.quantization.gptq import InputMoments, input_rows

ENOUGH_ROWS = 400_000
"""A convolution sees hundreds of rows of inputs in an image, a linear layer one."""


class LayerInputs:
    """Images on their way through a float network and its quantized copy, a module at a time.

    So a layer can be quantized with what the layers before it, quantized already, really pass on.
    Both begin with the same `batches` [n, 3, 32, 32], of which all are kept.
    """

    def __init__(self, batches: Iterable[Tensor]) -> None:
        self.floats = list(batches)
        self.received = self.floats

    @torch.no_grad()
    def moments(self, layer: nn.Conv2d | nn.Linear, scale: float = 1.0) -> InputMoments:
        """Of the inputs of `layer`; what the copy's receives is in integer steps of `scale`.

        On all images, or on as many as give `ENOUGH_ROWS`.
        """
        found = InputMoments()
        for floats, received in zip(self.floats, self.received, strict=True):
            if found.rows >= ENOUGH_ROWS:
                break
            found.see(input_rows(layer, floats), input_rows(layer, received / scale))
        return found

    @torch.no_grad()
    def go_through(self, module: nn.Module, copied: nn.Module) -> None:
        """Through the float network's next `module`, and through the one that stands for it."""
        self.floats = [module(batch) for batch in self.floats]
        # Steps of up to 8 bits are whole numbers in float32 too, at half the memory.
        self.received = [copied(batch).float() for batch in self.received]
