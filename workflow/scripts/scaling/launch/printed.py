"""Read the output of a user's command: epochs, software versions, and error messages.

A report on an epoch, or on a `step`, is a JSON object anywhere in a line: `{"epoch": 2, "seconds":
4.1, "samples": 50000, "loss": 0.31, "test_accuracy": 0.87}`. Only `epoch` is required.
"""

import json
import math
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import TextIOWrapper
from typing import IO, Annotated, Any

import pandas as pd
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, FiniteFloat, ValidationError

from scaling.core.errors import UserError
from scaling.core.files import LOG_LINE
from scaling.core.section import sentence

LONGEST_SHOWN = 200
LONGEST_READ = 1 << 16
LAST_LINES = 3000
"""Number of lines kept from the end of the output, to find the cause of a failure."""
FASTEST = 1e-4
"""Minimum seconds of an epoch or step. Lines that follow in less time were buffered."""
LARGEST = 3.4e38
LIKELY = re.compile(r"""["']epoch["']\s*:""")
FRACTION = re.compile(LIKELY.pattern + r"\s*\d+\.\d")
"""Matches a fractional epoch, such as `'epoch': 0.25`, which Hugging Face's Trainer logs."""
DECODER = json.JSONDecoder()
Time = Annotated[FiniteFloat, Gt(0)]


class Printed(BaseModel):
    """A report on an epoch or a step. Only scaling_client.py prints the last four keys."""

    epoch: Annotated[int, Ge(0)]
    step: Annotated[int, Ge(0)] = -1
    seconds: Annotated[FiniteFloat, Ge(FASTEST)] | None = None
    samples: Annotated[int, Gt(0), Le(2**62)] | None = None
    loss: float | None = None
    test_accuracy: Annotated[float, Ge(0), Le(1)] | None = None
    rank: Annotated[int, Ge(0)] | None = None
    steps: Annotated[int, Gt(0)] | None = None
    step_seconds: Time | None = None
    data_wait: Annotated[FiniteFloat, Ge(0)] | None = None


class Output:
    """Collects the output of a command. Times are seconds since this object was created."""

    def __init__(self) -> None:
        self._reports, self._broken = list[tuple[float, str]](), list[tuple[float, str]]()
        self.unread: list[str] = []
        """Lines that seem to report an epoch, but have no JSON object with the key `epoch`."""
        self.software: dict[str, Any] = {}
        self.tail = deque[str](maxlen=LAST_LINES)
        self.last = 0.0
        """Seconds from this object's creation to the last output."""
        self._start, self._frame = time.monotonic(), ""

    @property
    def lines(self) -> list[tuple[float, str]]:
        """Return (time, text) of each report; if there is none, of each line with broken JSON."""
        return self._reports or self._broken

    def seconds(self) -> float:
        """Return the seconds since this object was created."""
        return time.monotonic() - self._start

    def read(self, stream: IO[bytes]) -> None:
        """Print `stream` and collect its reports. The time of a report is when its line ended."""
        text = TextIOWrapper(stream, errors="replace", newline="")
        # In a thread of its own, so that slow processing of a line delays no time of the next.
        with ThreadPoolExecutor(1) as keeper:
            while line := text.readline(LONGEST_READ):
                self.last = self.seconds()
                keeper.submit(self._line, self.last, line)
            keeper.submit(self._line, self.last, "")

    def _line(self, now: float, line: str) -> None:
        """Collect a line's reports. Print the line, unless it is overwritten (a progress bar)."""
        text = line.strip()
        self._frame = text or self._frame
        if self._frame and (not line.endswith("\r") or LIKELY.search(self._frame)):
            print(self._frame, flush=True)
            self.tail.append(self._frame[:LOG_LINE])
            self._frame = ""
        found = [*objects(text)] if '"epoch"' in text or '"software"' in text else []
        for own in found:
            if isinstance(own.get("software"), dict) and "epoch" not in own:
                self.software = own["software"]
            elif "epoch" in own:
                self._reports.append((now, json.dumps(own)))
        if not any("epoch" in own for own in found) and LIKELY.search(text):
            if text.startswith("{") and not FRACTION.search(text):
                self._broken.append((now, text))
            self.unread.append(text[:LONGEST_SHOWN])


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a line that have the key `epoch` or `software`."""
    place = text.find("{")
    while place >= 0:
        try:
            found, end = DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            found, end = {}, place + 1
        if found.keys() & {"epoch", "software"}:
            yield found
        else:
            end = place + 1
        place = text.find("{", end)


def read_lines(timed_lines: Sequence[tuple[float, str]], ranks: int = 1) -> pd.DataFrame:
    """Return a table with a row per report; `end` is the time at which the report was printed.

    Each of `ranks` processes may report an epoch or step once. Missing `seconds` become the time
    since the previous epoch or step ended. Raise UserError for an invalid line.
    """
    rows, times, last = list[dict[str, Any]](), Counter[tuple[int, int]](), (0, -1)
    timed: dict[tuple[int, int], bool] = {}
    for now, line in timed_lines:
        try:
            printed = Printed.model_validate_json(line)
            place = (printed.epoch, printed.step)
            if place not in times and place < last:
                raise ValueError(f"it comes after {last[0]}: print epochs in their order")
            has_seconds = printed.seconds is not None
            unlike = printed.rank is None and timed.setdefault(place, has_seconds) != has_seconds
            if times[place] == ranks:
                raise ValueError("each process has printed that before: print one line an epoch")
            if unlike:
                raise ValueError(
                    "not all lines of that epoch have seconds: print one line an epoch"
                )
        except ValidationError as invalid:
            first = invalid.errors()[0]
            no_json = first["type"] == "json_invalid"
            why = "it is not JSON: print(json.dumps(…)) writes it" if no_json else sentence(first)
            raise _refused(line, why) from invalid
        except ValueError as error:
            raise _refused(line, str(error)) from error
        times[place] += 1
        last = max(last, place)
        row = printed.model_dump() | {"end": now}
        if printed.loss is not None and not abs(printed.loss) <= LARGEST:
            row["loss"] = math.inf  # To pandas NaN is what was not printed; float32 holds no more.
        rows.append(row)
    lines = pd.DataFrame(rows, columns=[*Printed.model_fields, "end"], dtype=float)
    ends = lines.groupby(["epoch", "step"])["end"].max()
    took = ends.diff().fillna(ends)
    waited = lines[["epoch", "step"]].join(took, on=["epoch", "step"])["end"]
    missing = lines["seconds"].isna()
    if len(fast := lines[missing & (waited < FASTEST)]):
        why = "no time has passed since the line before: flush each line, or print seconds"
        raise _refused(timed_lines[fast.index[0]][1], why)
    return lines.assign(seconds=lines["seconds"].mask(missing, waited))


def _refused(line: str, why: str) -> UserError:
    return UserError(f"the command printed {line.strip()[:LONGEST_SHOWN]}, and {why}")


def epochs_of(lines: pd.DataFrame) -> pd.DataFrame:
    """Return one row per epoch from `lines`, which has a row per report on an epoch or step.

    Reports of several processes on a step become one: longest time, mean loss, and summed samples.
    Equal `samples` are not summed, because each process then likely prints the total.
    """
    places = lines.groupby(["epoch", "step"])
    slowest = lines.loc[places["seconds"].idxmax()].set_index(["epoch", "step"])
    samples = places["samples"]
    slowest["samples"] = samples.max().mask(samples.nunique() > 1, samples.sum())
    slowest["loss"] = places["loss"].mean()
    found = slowest.reset_index().groupby("epoch")
    whole = found.agg(
        seconds=("seconds", "sum"),
        samples=("samples", lambda own: own.sum(skipna=False)),
        loss=("loss", "mean"),
        test_accuracy=("test_accuracy", "last"),
        end=("end", "last"),
        steps=("steps", "max"),
        lines=("step", lambda own: (own >= 0).sum()),
    )
    whole["steps"] = whole["steps"].fillna(whole.pop("lines"))
    return whole
