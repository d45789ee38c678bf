"""How long measurements take and what they leave on disk, by the records that are there."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.config import model_options
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError

Times = dict[Path | tuple[str, str], float]
"""Seconds of measurements by the places of their records, and the means of each kind."""
GUESSED_SECONDS, GUESSED_BYTES = 10, 200_000
"""Of a measurement when nothing is known, with its share of tables and report: the demo's."""
IMAGE_BYTES = {"digits": 5_500_000, "cifar10": 355_000_000}
"""Of a dataset of 32×32 pixels, with what is downloaded for it."""


def records_in(folder: Path) -> Iterator[Path]:
    """The records of measurements below a folder."""
    return (path for name in stored.RECORDS for path in folder.glob(f"{name}/**/*.json"))


def _kind(record: Path) -> tuple[str, str]:
    return record.parts[0], record.name


def times(folder: Path) -> Times:
    """What the records below a folder tell; some old ones tell nothing."""
    found: dict[Any, list[float]] = defaultdict(list)
    for path in records_in(folder):
        try:
            ends = files.read_json(path)["environment"]
            start, end = (datetime.fromisoformat(ends[key]) for key in ("started", "ended"))
        except (UserError, KeyError, TypeError, ValueError):
            continue
        record = path.relative_to(folder)
        for key in (record, _kind(record)):
            found[key].append((end - start).total_seconds())
    return {key: fmean(seconds) for key, seconds in found.items()}


def sources(config: dict[str, Any], records: Path, studies: Path, on_cpu: bool) -> dict[str, Times]:
    """What is known here, and from stored studies of the same model and kind of device."""
    found = {"as measured here": times(records)}
    for path in sorted(studies.glob(f"*/{stored.CONFIG}")):
        other = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        alike = model_options(other) == model_options(config)
        if alike and (other["device"] == "cpu") == on_cpu:
            found[f"as in {path.parent}"] = times(path.parent)
    return found


def seconds(record: Path, known: dict[str, Times]) -> tuple[float, str]:
    """About how long the measurement of a record takes, and by what: own times here go first."""
    here, *others = known.items()
    for times_of in ([here], others):
        for key in (record, _kind(record)):
            for name, found in times_of:
                if key in found:
                    return found[key], name
    return GUESSED_SECONDS, f"guessed at {GUESSED_SECONDS} s, the demo's on two cores"


def duration(value: float) -> str:
    """`40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def time_needed(wanted: list[Path], known: dict[str, Times]) -> str:
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
