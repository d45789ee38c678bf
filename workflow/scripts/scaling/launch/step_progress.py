"""How far a device is with the steps of an epoch, told without waiting for it."""

import math
from contextlib import nullcontext

import torch

from scaling.launch.stall import Position

REPORTS = 16
"""At how many steps of an epoch, at most, the device says that it has ended them."""


class StepProgress:
    """The `position` of a training of at most `steps` steps on `device`, from any thread.

    After some steps the device writes their number to memory that the host reads without a call to
    the driver, which may be busy with a launch. It does so on a stream of its own, so that no step
    waits for the writing.
    """

    def __init__(self, steps: int, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        self._numbers = torch.arange(steps + 1, device=device)
        self._finished = torch.zeros((), dtype=torch.long, pin_memory=on_gpu)
        self._side = torch.cuda.Stream(device) if on_gpu else None
        self._training = self._launched = self._steps = self._epoch = 0
        self._every = 1
        self._under_way = False

    def start(self, epoch: int, steps: int) -> None:
        """Begin with `steps` steps of epoch `epoch`, on a device that is idle."""
        self._finished.zero_()
        self._training += 1
        self._launched, self._epoch, self._steps = 0, epoch, steps
        self._every = math.ceil(steps / REPORTS)
        self._under_way = True

    def launch(self, step: int) -> None:
        """Note that step number `step` (from 1) has been launched on the current stream."""
        self._launched = step
        if step % self._every or step == self._steps:
            return
        if self._side is not None:
            self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side) if self._side is not None else nullcontext():
            self._finished.copy_(self._numbers[step], non_blocking=True)

    def end(self) -> None:
        """The device has ended all steps."""
        self._under_way = False

    def position(self) -> Position | None:
        """Where the training is; None between trainings."""
        if not self._under_way:
            return None
        finished = int(self._finished)
        awaited = min(finished + self._every, self._steps)
        return Position(self._training, self._epoch, self._launched, finished, awaited)
