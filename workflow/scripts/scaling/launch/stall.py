"""Ends a rank whose device no longer gets on with the steps that its host has launched.

A collective captured in a CUDA graph is unseen by NCCL's own watchdog: when one rank is stuck, the
devices of all others wait inside a step, and their hosts for their devices, without end. So each
rank looks at its own steps once in a while, from a thread that calls nothing that could wait.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

POLL_SECONDS = 1.0
LAST_WORDS_SECONDS = 2 * POLL_SECONDS
"""How long a rank that gave up stays: others that wait as well are to say so before they are ended.
"""


@dataclass(frozen=True)
class Position:
    """How far a rank is in one `training` (a number of its own), of epoch `epoch` or after all (0).

    `launched` is the last step that the host gave to the device, `finished` the last one that the
    device is known to have ended, `awaited` the next one of which that will be known.
    """

    training: int
    epoch: int
    launched: int
    finished: int
    awaited: int


class StallError(Exception):
    """No step of a rank has ended for `seconds`."""

    def __init__(self, position: Position, seconds: float) -> None:
        at = position
        where = f"epoch {at.epoch}" if at.epoch else "the steps after the last epoch"
        sentence = f"timed out: waited {seconds:.0f} s for step {at.awaited} of {where}"
        if at.launched < at.awaited:
            sentence += f", only {at.launched} launched"
        super().__init__(sentence)
        self.position = position


class Patience:
    """Sees from one look to the next whether steps end, and for how long none has."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._last: tuple[int, int] | None = None
        self._since = 0.0

    def look(self, position: Position | None, now: float) -> StallError | None:
        """The error when no step has ended for the timeout; `position` is None between trainings.

        `now` is in seconds, from any start.
        """
        seen = (position.training, position.finished) if position else None
        if seen != self._last:
            self._last, self._since = seen, now
        waited = now - self._since
        return StallError(position, waited) if position and waited >= self._timeout else None


def watch(
    position: Callable[[], Position | None],
    timeout_seconds: float,
    give_up: Callable[[StallError], object],
) -> None:
    """Look at `position` every `POLL_SECONDS` from a thread; call `give_up` once if it stalls.

    The thread ends with the process.
    """

    def look() -> None:
        patience = Patience(timeout_seconds)
        stall = None
        while stall is None:
            time.sleep(POLL_SECONDS)
            stall = patience.look(position(), time.monotonic())
        give_up(stall)

    threading.Thread(target=look, name="stall watch", daemon=True).start()
