"""How long measurements take and what they leave on disk, by the records that are there."""

import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.config import model_options
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError

GUESSED_SECONDS, GUESSED_BYTES = 10, 200_000
"""Of a measurement when nothing is known, with its share of tables and report: the demo's."""
HERE, LONGEST_GAP = "as measured here", 60.0
"""The name of a study's own durations; longer gaps are no part of them."""
IMAGE_BYTES = {"digits": 5_500_000, "cifar10": 355_000_000}
"""Of a dataset of 32×32 pixels, with what is downloaded for it."""


def records_in(folder: Path) -> Iterator[Path]:
    """The records of measurements below a folder."""
    return (path for name in stored.RECORDS for path in folder.glob(f"{name}/**/*.json"))


class Durations:
    """Seconds of the measurements below a folder, as a study with other epochs would take."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self._folder, self._config = folder, config
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._ends: list[tuple[datetime, datetime]] = []
        for path in records_in(folder):
            self.add(path.relative_to(folder))

    def add(self, record: Path) -> None:
        """Learn from one record; some old ones tell nothing."""
        try:
            found = files.read_json(self._folder / record)
            ends = found["environment"]
            start, end = (datetime.fromisoformat(ends[key]) for key in ("started", "ended"))
            seconds = (end - start).total_seconds() + self._more(record, found)
        except (UserError, KeyError, TypeError, ValueError):
            return
        self._ends.append((start, end))
        for key in likes(record):
            self._seconds[key].append(seconds)

    def of(self, like: str) -> float | None:
        """The mean of the measurements that are alike in this way; None without any."""
        return fmean(self._seconds[like]) if like in self._seconds else None

    @property
    def between(self) -> float:
        """Median seconds from the end of one measurement to the start of the next; 0 without."""
        ordered = sorted(self._ends)
        gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(ordered)]
        return median([gap for gap in gaps if 0 <= gap < LONGEST_GAP] or [0.0])

    def _more(self, record: Path, found: dict[str, Any]) -> float:
        """Seconds that the configured epochs take longer than those of a record."""
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
    """What a measurement is like, from the most to the least: itself, its cell, its recipe, kind.

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
"""What is known here, and from stored studies of the same model and kind of device."""


def sources(config: dict[str, Any], records: Path, studies: Path, on_cpu: bool) -> Known:
    """Read all records that tell how long the measurements of `config` take."""
    found = {HERE: Durations(records, config)}
    for path in sorted(studies.glob(f"*/{stored.CONFIG}")):
        other = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        alike = model_options(other) == model_options(config)
        if alike and (other["device"] == "cpu") == on_cpu:
            found[f"as in {path.parent}"] = Durations(path.parent, config)
    return found


def seconds(record: Path, known: Known) -> tuple[float, str]:
    """About how long a measurement takes, and by what: what is most alike, measured here first."""
    for like in likes(record):
        for name, durations in known.items():
            if (found := durations.of(like)) is not None:
                return found + durations.between, name
    return GUESSED_SECONDS, f"guessed at {GUESSED_SECONDS} s, the demo's on two cores"


def left(done: list[Path], wanted: list[Path], known: Known) -> float:
    """About how long `wanted` still take: as their like here, else as elsewhere times a factor.

    The factor is by how much those `done` took longer than elsewhere.
    """
    others = {name: durations for name, durations in known.items() if name != HERE}
    took, foreseen = (
        sum(seconds(record, by)[0] for record in done) for by in (known, others or known)
    )
    factor = took / foreseen if foreseen else 1.0
    found = [seconds(record, known) for record in wanted]
    return sum(value * (1.0 if name == HERE else factor) for value, name in found)


def duration(value: float) -> str:
    """`40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def time_needed(wanted: list[Path], known: Known) -> str:
    """About how long measurements take one after another, and how that is known."""
    found = [seconds(record, known) for record in wanted]
    basis = Counter(name for _, name in found)
    said = ", ".join(f"{count} {name}" for name, count in basis.most_common())
    return f"about {duration(sum(value for value, _ in found))} one after another ({said})"


def disk_needed(config: dict[str, Any], count: int, results: Path, images: bool) -> str:
    """About what `count` measurements take of the disk, with `images` to prepare, and what is free.

    A measurement takes as much as those in `results` with all that is made of them.
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
