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
        except ValidationError as error:
            first = error.errors()[0]
            raise _wrong(line, f"{'.'.join(map(str, first['loc']))} {first['msg']}") from error
        last, place = next(reversed(self._told.values()), found), found.place
        if (last.epoch is None) != (found.epoch is None):
            raise _wrong(line, "only some lines have an epoch: print it in all or in none")
        if place not in self._told and place < last.place:
            raise _wrong(line, f"it comes after {last.place[0]}: print epochs in their order")
        self._times[place] += 1
        if self._times[place] > self._ranks:
            raise _wrong(line, "each process has printed that before: number epochs on")
        seconds = found.seconds or max(now - self._before, 1e-9)
        self._before = now
        if place not in self._told or seconds > (self._told[place].seconds or 0):
            self._told[place] = found.model_copy(update={"end": now, "seconds": seconds})

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
    samples = [line.samples for line in lines if line.samples is not None]
    losses = [line.loss for line in lines if line.loss is not None]
    accuracies = [line.test_accuracy for line in lines if line.test_accuracy is not None]
    last = lines[-1]
    return Printed.model_construct(
        epoch=last.epoch,
        seconds=sum(line.seconds or 0 for line in lines),
        samples=sum(samples) if len(samples) == len(lines) else None,
        loss=fmean(losses) if losses else None,
        test_accuracy=accuracies[-1] if accuracies else None,
        end=last.end,
        steps=len(lines) if last.step is not None else 0,
    )


def _wrong(line: str, why: str) -> UserError:
    return UserError(f"the command printed {line.strip()[:LONGEST_SHOWN]}, and {why}")
