"""The start-up time of a run, by phase.

`launch`: from the start of the command to main() of the process, with srun and torchrun on several
nodes;
`imports`: PyTorch and the modules that need it; `join`: the device and the process group;
`dataset`: reading and unpacking the images; `recipe`: building the model and its trainer, with
compilation and algorithm search for CUDA graphs. Without a graph these are in the warm-up epoch.
"""

import time
from itertools import pairwise

from scaling.core.records.run import PHASES


class StartupClock:
    """The end of each start-up phase of a process, in seconds since `started` (monotonic)."""

    def __init__(self, started: float) -> None:
        self._started = started
        self.ends: dict[str, float] = {}

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._started

    def end(self, phase: str) -> None:
        """Record that the phase ends now."""
        self.ends[phase] = self.elapsed()


def merge(ends: list[dict[str, float]]) -> dict[str, float]:
    """Return the seconds of each of `PHASES` and their `total`, over all ranks.

    A phase ends when the last rank has ended it, so that the phases add up to the total.
    """
    last = [max(rank[phase] for rank in ends) for phase in PHASES]
    seconds = [end - start for start, end in pairwise([0.0, *last])]
    return {**dict(zip(PHASES, seconds, strict=True)), "total": last[-1]}
