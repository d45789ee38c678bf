"""Estimate the duration and disk use of measurements, from existing records."""

import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from scaling.config import stored
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.core.training_options import Model

GUESSED_SECONDS, GUESSED_BYTES = 10, 200_000
"""A measurement's cost without any records, with its share of tables and report: the demo's."""
HERE, LONGEST_GAP = "as measured here", 60.0
"""The key of a study's own durations; longer gaps between measurements are ignored."""
IMAGE_BYTES = {"digits": 5_500_000, "cifar10": 355_000_000}
"""Size of a dataset of 32×32 pixels, with its download."""


def records_in(folder: Path) -> Iterator[Path]:
    """Return the records of measurements below a folder."""
    return (path for name in stored.RECORDS for path in folder.glob(f"{name}/**/*.json"))


class Durations:
    """Seconds of the measurements below a folder, converted to this study's epochs."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self._folder, self._config = folder, config
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._ends: list[tuple[datetime, datetime]] = []
        for path in records_in(folder):
            self.add(path.relative_to(folder))

    def add(self, record: Path) -> None:
        """Add one record; some old ones have no duration."""
        try:
            found = files.read_json(self._folder / record)
            ends = found["environment"]
            start, end = (
                datetime.fromisoformat(ends[key]).astimezone(UTC) for key in ("started", "ended")
            )
            took = found.get("run_seconds") or (end - start).total_seconds()
            seconds = float(took + self._more(record, found))
        except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return
        if not 0 < seconds < math.inf:
            return
        self._ends.append((start, end))
        self.__dict__.pop("between", None)
        for key in likes(record):
            self._seconds[key].append(seconds)

    def of(self, like: str) -> float | None:
        """Return the mean of the measurements with this key, or None."""
        return fmean(self._seconds[like]) if like in self._seconds else None

    @cached_property
    def between(self) -> float:
        """Return the median seconds between measurements; 0 without any."""
        ordered = sorted(self._ends)
        gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(ordered)]
        return median([gap for gap in gaps if 0 <= gap < LONGEST_GAP] or [0.0])

    def _more(self, record: Path, found: dict[str, Any]) -> float:
        """Return the extra seconds of the configured epochs compared with a record's."""
        if record.name != "run.json" or not found["epochs"]:
            return 0.0
        epochs: dict[int, float] = defaultdict(float)
        for row in found["epochs"]:
            epochs[row["epoch"]] = max(epochs[row["epoch"]], row["seconds"])
        one = median(epochs.values())
        asked = {"warmup_seconds": 0.0, "measured_seconds": 0.0} | self._config["training"]
        count = sum(
            max(asked[f"{role}_epochs"], math.ceil(asked[f"{role}_seconds"] / one))
            for role in ("warmup", "measured")
        )
        if record.parts[0] == "to_accuracy":
            count = self._config["time_to_accuracy"]["epochs"]
        return count * one - sum(epochs.values())


def likes(record: Path) -> list[str]:
    """Return a measurement's keys from specific to general: itself, its cell, its recipe, kind.

    >>> likes(Path("runs/recipe~a/strategy~b/gpus~1/batch_size~32/seed~0/run.json"))[1:3]
    ['runs/recipe~a/strategy~b/gpus~1/batch_size~32', 'runs/recipe~a/strategy~b']
    """
    folders = [one for one in record.parts[:-1] if not one.startswith(("seed~", "repeat~"))]
    return [
        record.as_posix(),
        "/".join(folders),
        "/".join(folders[:3]),
        f"{folders[0]} {record.name}",
    ]


Known = dict[str, Durations]
"""Durations of this study, and of stored studies with the same model and kind of device."""


def sources(config: dict[str, Any], records: Path, studies: Path, on_cpu: bool) -> Known:
    """Return the durations of all records that help to estimate the measurements of `config`."""
    found = {HERE: Durations(records, config)}
    for path in sorted(studies.glob(f"*/{stored.CONFIG}")):
        try:
            other = stored.read(path.parent)
            alike = Model.of(other["model"]) == Model.of(config["model"])
            alike = alike and (other["device"] == "cpu") == on_cpu
        except (UserError, LookupError):
            continue  # Another's study; its own start tells what is wrong.
        if alike:
            found[f"as in {path.parent}"] = Durations(path.parent, config)
    return found


def seconds(record: Path, known: Known) -> tuple[float, str]:
    """Return a measurement's estimated seconds and their source: the closest match, ours first."""
    for like in likes(record):
        for name, durations in known.items():
            if (found := durations.of(like)) is not None:
                return found + durations.between, name
    return GUESSED_SECONDS, f"guessed at {GUESSED_SECONDS} s, the demo's on two cores"


def left(done: list[Path], wanted: list[Path], known: Known) -> float:
    """Return the estimated seconds of `wanted`: from this study, else from others times a factor.

    The factor is how much longer those `done` took than elsewhere.
    """
    others = {name: durations for name, durations in known.items() if name != HERE}
    took, foreseen = (
        sum(seconds(record, by)[0] for record in done) for by in (known, others or known)
    )
    factor = took / foreseen if foreseen else 1.0
    found = [seconds(record, known) for record in wanted]
    return sum(value * (1.0 if name == HERE else factor) for value, name in found)


def duration(value: float) -> str:
    """Format a duration: `40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def time_needed(wanted: list[Path], known: Known) -> str:
    """Describe how long the measurements take one after another, and how that is known."""
    found = [seconds(record, known) for record in wanted]
    basis = Counter(name for _, name in found)
    said = ", ".join(f"{count} {name}" for name, count in basis.most_common())
    return f"about {duration(sum(value for value, _ in found))} one after another ({said})"


def disk_needed(config: dict[str, Any], count: int, results: Path, images: bool) -> str:
    """Describe the disk space for `count` measurements and `images` to prepare, and the free space.

    A measurement's share includes everything made of it, as in `results`.
    """
    there = len(list(records_in(results)))
    made = sum(path.stat().st_size for path in results.glob("**/*") if path.is_file())
    needed = count * (made / there if there else GUESSED_BYTES)
    basis = "as here" if there else "as in the demo"
    if images:
        dataset = config["dataset"]
        own = 3072 * (dataset["train_images"] + dataset["test_images"])
        scale = (dataset.get("image_size", 32) / 32) ** 2
        needed += scale * IMAGE_BYTES.get(dataset["source"], own)
    free = fmt.data(shutil.disk_usage(results.parent).free)
    return f"about {fmt.data(needed)} of disk ({basis}), of which {free} are free"
