"""Watchdog that aborts a rank whose device makes no progress on the steps that its host launched.

A collective captured in a CUDA graph is unseen by NCCL's own watchdog: when one rank is stuck, the
devices of all others wait inside a step, and their hosts for their devices, without end. So each
rank looks at its own steps once in a while, from a thread that calls nothing that could wait.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch

POLL_SECONDS = 1.0
REPORT_GRACE_SECONDS = 2 * POLL_SECONDS
"""Delay before a stalled rank exits, so that the others can report too."""
REPORTS = 16
"""At how many steps of an epoch, at most, the device says that it has ended them."""


@dataclass(frozen=True)
class Progress:
    """How far a rank is in one `training` (a number of its own), of epoch `epoch` or after all (0).

    `launched` is the last step that the host gave to the device, `finished` the last one that the
    device is known to have ended, `awaited` the next one of which that will be known.
    """

    training: int
    epoch: int
    launched: int
    finished: int
    awaited: int


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

    def position(self) -> Progress | None:
        """Where the training is; None between trainings."""
        if not self._under_way:
            return None
        finished = int(self._finished)
        awaited = min(finished + self._every, self._steps)
        return Progress(self._training, self._epoch, self._launched, finished, awaited)


class StallError(Exception):
    """No step of a rank has ended for `seconds`."""

    def __init__(self, position: Progress, seconds: float) -> None:
        at = position
        where = f"epoch {at.epoch}" if at.epoch else "the steps after the last epoch"
        sentence = f"timed out: waited {seconds:.0f} s for step {at.awaited} of {where}"
        if at.launched < at.awaited:
            sentence += f", only {at.launched} launched"
        super().__init__(sentence)
        self.position = position


def first_stall(
    looks: Iterable[tuple[float, Progress | None]], timeout_seconds: float
) -> StallError:
    """The error when no step has ended for the timeout, from looks at (seconds, position)."""
    last, since = None, 0.0
    for now, position in looks:
        seen = (position.training, position.finished) if position else None
        if seen != last:
            last, since = seen, now
        elif position and now - since >= timeout_seconds:
            return StallError(position, now - since)
    raise ValueError("no step stalled")


def watch(
    position: Callable[[], Progress | None],
    timeout_seconds: float,
    give_up: Callable[[StallError], object],
) -> None:
    """Look at `position` every `POLL_SECONDS` from a thread; call `give_up` once if it stalls.

    The thread ends with the process.
    """

    def looks() -> Iterator[tuple[float, Progress | None]]:
        while True:
            time.sleep(POLL_SECONDS)
            yield time.monotonic(), position()

    def look() -> None:
        give_up(first_stall(looks(), timeout_seconds))

    threading.Thread(target=look, name="stall watch", daemon=True).start()
