"""What a run spends before its first epoch, phase by phase.

`launch`: from the start of the command to main() of the process, over several nodes with srun and
torchrun;
`imports`: PyTorch and the modules that need it; `join`: the device and the process group;
`dataset`: the images, as read and unpacked; `recipe`: the model and its trainer, with what is
compiled and searched for in capturing CUDA graphs. Without a graph that is in the warm-up epoch.
"""

import time
from itertools import pairwise

from scaling.core.records.run import PHASES


class StartupClock:
    """When one process ended each phase, in seconds since `started`, a time.monotonic()."""

    def __init__(self, started: float) -> None:
        self._started = started
        self.ends: dict[str, float] = {}

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def end(self, phase: str) -> None:
        """The phase ends now."""
        self.ends[phase] = self.elapsed()


def merge(ends: list[dict[str, float]]) -> dict[str, float]:
    """Seconds of each of `PHASES`, and their `total`, from what the clock of each rank read.

    A phase ends when the last rank has ended it, so that the phases add up to the total.
    """
    last = [max(rank[phase] for rank in ends) for phase in PHASES]
    seconds = [end - start for start, end in pairwise([0.0, *last])]
    return {**dict(zip(PHASES, seconds, strict=True)), "total": last[-1]}
