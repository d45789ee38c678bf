"""Read the epochs that a user's own training prints, one line of JSON for each epoch or step.

`{"epoch": 2, "seconds": 4.1, "samples": 50000, "loss": 0.31, "test_accuracy": 0.87}`: all but
`epoch` may be left out. With `step` too the lines of an epoch are added up; with `step` alone the
steps are cut into as many equal parts as epochs are asked for. Other lines are ignored.
"""

import re
from collections.abc import Iterable, Sequence
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
    """The lines of a command that tell of its epochs, as they come."""

    def __init__(self) -> None:
        self.lines: list[Printed] = []

    def read(self, line: str, now: float) -> None:
        """Take a line that was printed `now`; UserError if it tells of an epoch and is wrong."""
        if not TELLS.match(line):
            return
        try:
            found = Printed.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            raise _wrong(line, f"{'.'.join(map(str, first['loc']))} {first['msg']}") from error
        before = self.lines[-1] if self.lines else Printed(epoch=found.epoch)
        if (before.epoch is None) != (found.epoch is None):
            raise _wrong(line, "only some lines have an epoch: print it in all or in none")
        if found.place < before.place:
            raise _wrong(line, f"it comes after {before.place[0]}: print epochs in their order")
        seconds = found.seconds or max(now - before.end, 1e-9)
        self.lines.append(found.model_copy(update={"end": now, "seconds": seconds}))

    def epochs(self, wanted: int) -> list[Printed]:
        """Return the epochs; steps that have none are cut into `wanted` equal parts.

        Of lines for the same place, as several ranks print them, the longest counts. UserError for
        fewer steps than parts.
        """
        lines = _longest_of_each(self.lines)
        if not lines or lines[0].epoch is not None:
            groups: dict[int | None, list[Printed]] = {}
            for line in lines:
                groups.setdefault(line.epoch, []).append(line)
            return [_sum(group) for group in groups.values()]
        size = len(lines) // wanted
        if not size:
            raise UserError(
                f"the command printed {len(lines)} steps, to be cut into {wanted} parts "
                "(training.warmup_epochs and measured_epochs): train for longer, or print epochs"
            )
        return [_sum(lines[size * part : size * (part + 1)]) for part in range(wanted)]


def _longest_of_each(lines: Iterable[Printed]) -> list[Printed]:
    longest: dict[tuple[int, int], Printed] = {}
    for line in lines:
        other = longest.get(line.place)
        if other is None or (line.seconds or 0) > (other.seconds or 0):
            longest[line.place] = line
    return list(longest.values())


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
