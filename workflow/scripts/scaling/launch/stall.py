"""Abort a rank whose device makes no progress on the steps that were launched.

NCCL's own watchdog does not see collectives in CUDA graphs.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

POLL_SECONDS = 1.0
REPORT_GRACE_SECONDS = 2 * POLL_SECONDS
"""Seconds from a stalled rank's report to its exit, so that other ranks can report, too."""
REPORTS = 16
"""Maximum number of times per epoch that the device reports its progress."""


class Progress(NamedTuple):
    """Progress of one rank: the numbers of the last launched and of the last finished step.

    `epoch` is 0 in a measurement after the last epoch. `training` counts epochs and measurements.
    """

    training: int
    epoch: int
    launched: int
    finished: int


class StepProgress:
    """Tracks the progress of an epoch of at most `steps` steps. Any thread may call `position`.

    On a side stream, the device writes the number of finished steps to host memory, which is read
    without a driver call that could block.
    """

    def __init__(self, steps: int, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        self._numbers = torch.arange(steps + 1, device=device)
        self._finished = torch.zeros((), dtype=torch.long, pin_memory=on_gpu)
        self._side = torch.cuda.Stream(device) if on_gpu else None
        self._training = self._launched = self._epoch = 0
        self._steps, self._every = 0, 1  # None are under way.

    def start(self, epoch: int, steps: int) -> None:
        """Begin an epoch of `steps` steps. The device must be idle."""
        self._finished.zero_()
        self._training += 1
        self._launched, self._epoch, self._steps = 0, epoch, steps
        self._every = math.ceil(steps / REPORTS)

    def launch(self, step: int) -> None:
        """Record that step number `step` (from 1) was launched in the current stream."""
        self._launched = step
        if step % self._every or step == self._steps:
            return
        if self._side is not None:
            self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            self._finished.copy_(self._numbers[step], non_blocking=True)

    def end(self) -> None:
        """Record that the device has finished all steps."""
        self._steps = 0

    def position(self) -> Progress | None:
        """Return the current progress; None if no epoch is running."""
        if not self._steps:
            return None
        return Progress(self._training, self._epoch, self._launched, int(self._finished))


class StallError(Exception):
    """A rank made no progress on its steps for `seconds`."""

    def __init__(self, position: Progress, seconds: float) -> None:
        where = f"epoch {position.epoch}" if position.epoch else "the steps after the last epoch"
        message = f"timed out: waited {seconds:.0f} s after step {position.finished} of {where}"
        super().__init__(f"{message}, {position.launched} launched")
        self.position = position


def watch(
    position: Callable[[], Progress | None],
    timeout_seconds: float,
    give_up: Callable[[StallError], object],
) -> None:
    """Start a thread that calls `give_up` if no step in `position` ends for `timeout_seconds`."""

    def look() -> None:
        last, since = position(), time.monotonic()
        while not (last and time.monotonic() - since >= timeout_seconds):
            time.sleep(POLL_SECONDS)
            seen = position()
            if not (seen and last) or (seen.training, seen.finished) != last[::3]:
                since = time.monotonic()
            last = seen
        give_up(StallError(last, time.monotonic() - since))

    threading.Thread(target=look, name="stall watch", daemon=True).start()
