"""Read the epochs that a user's own training prints, one line of JSON for each epoch or step.

`{"epoch": 2, "seconds": 4.1, "samples": 50000, "loss": 0.31, "test_accuracy": 0.87}`: all but
`epoch` may be left out. With `step` too the lines of an epoch are added up; with `step` alone the
steps are cut into as many equal parts as epochs are asked for. Other lines are ignored.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from statistics import fmean
from typing import Annotated

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, FiniteFloat, ValidationError

from scaling.core.errors import UserError

LONGEST_SHOWN = 200
TELLS = re.compile(r'\s*\{.*"(epoch|step)"')


class Printed(BaseModel):
    """An epoch or a step as it was printed; `end` is when, in seconds since the command's start."""

    epoch: Annotated[int, Ge(0)] | None = None
    step: Annotated[int, Ge(0)] | None = None
    seconds: Annotated[FiniteFloat, Gt(0)] | None = None
    samples: Annotated[int, Gt(0), Le(2**62)] | None = None
    loss: float | None = None
    test_accuracy: Annotated[float, Ge(0), Le(1)] | None = None
    end: float = 0.0
    steps: int = 0

    @property
    def place(self) -> tuple[int, int]:
        return (self.epoch or 0, -1 if self.step is None else self.step)


class PrintedEpochs:
    """What a command's lines tell of its epochs or steps, in order.

    Each of at most `ranks` processes may print the same ones; the longest counts.
    """

    def __init__(self, ranks: int = 1) -> None:
        self._told: dict[tuple[int, int], Printed] = {}
        self._times: Counter[tuple[int, int]] = Counter()
        self._ranks, self._before = ranks, 0.0

    def told(self) -> list[Printed]:
        """Return the epochs or steps so far."""
        return list(self._told.values())

    def read(self, line: str, now: float) -> None:
        """Take a line that was printed `now`; UserError if it tells of an epoch and is wrong."""
        if not TELLS.match(line):
            return
        try:
            found = Printed.model_validate_json(line)
            self._check(found)
        except ValueError as error:
            why = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                why = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
            shown = line.strip()[:LONGEST_SHOWN]
            raise UserError(f"the command printed {shown}, and {why}") from error
        seconds = found.seconds or max(now - self._before, 1e-9)
        self._before = now
        before = self._told.get(found.place)
        if before is None or seconds > (before.seconds or 0):
            own = found.model_copy(update={"end": now, "seconds": seconds})
            self._told[found.place] = own

    def _check(self, found: Printed) -> None:
        """Raise ValueError for a line that cannot come after those before."""
        last, place = next(reversed(self._told.values()), found), found.place
        self._times[place] += 1
        if (last.epoch is None) != (found.epoch is None):
            raise ValueError("only some lines have an epoch: print it in all or in none")
        if place not in self._told and place < last.place:
            raise ValueError(f"it comes after {last.place[0]}: print epochs in their order")
        if self._times[place] > self._ranks:
            raise ValueError("each process has printed that before: number epochs on")

    def epochs(self, wanted: int) -> list[Printed]:
        """Return the epochs; steps that have none are cut into `wanted` equal parts.

        UserError for fewer steps than parts.
        """
        lines = self.told()
        if not lines or lines[0].epoch is not None:
            return [_sum([*own]) for _, own in groupby(lines, lambda line: line.epoch)]
        size = len(lines) // wanted
        if not size:
            raise UserError(
                f"the command printed {len(lines)} steps, to be cut into {wanted} parts "
                "(training.warmup_epochs and measured_epochs): train for longer, or print epochs"
            )
        return [_sum(lines[size * part : size * (part + 1)]) for part in range(wanted)]


def _sum(lines: Sequence[Printed]) -> Printed:
    """Return an epoch of its steps: of several, their sums, mean loss and last accuracy."""
    samples, losses, accuracies = (
        [value for line in lines if (value := getattr(line, name)) is not None]
        for name in ("samples", "loss", "test_accuracy")
    )
    return lines[-1].model_copy(
        update={
            "seconds": sum(line.seconds or 0 for line in lines),
            "samples": sum(samples) if len(samples) == len(lines) else None,
            "loss": fmean(losses) if losses else None,
            "test_accuracy": accuracies[-1] if accuracies else None,
            "steps": len(lines) if lines[-1].step is not None else 0,
        }
    )
