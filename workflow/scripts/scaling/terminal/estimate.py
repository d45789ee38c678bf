"""Estimate the duration and disk use of measurements, from existing records."""

import math
import shutil
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from scaling.config import stored
from scaling.config.config import model_options
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError

GUESSED_SECONDS, GUESSED_BYTES = 10, 200_000
"""A measurement's cost without any records, with its share of tables and report: the demo's."""
HERE = "as measured here"
IMAGE_BYTES = {"digits": 5_500_000, "cifar10": 355_000_000}
"""Size of a dataset of 32×32 pixels, with its download."""


class Known:
    """Seconds of the measurements below `records`, and of stored studies that are alike.

    Those have the same model and kind of device; epochs are counted as `config` asks for them.
    """

    def __init__(
        self, config: dict[str, Any], records: Path, studies: Path, *, on_cpu: bool
    ) -> None:
        self._config, self._records = config, records
        self.sources: dict[str, dict[str, list[float]]] = {}
        self._read(HERE, records)
        for path in sorted(studies.glob(f"*/{stored.CONFIG}")):
            try:
                other = stored.read(path.parent)
                alike = model_options(other) == model_options(config)
                if alike and (other["device"] == "cpu") == on_cpu:
                    self._read(f"as in {path.parent}", path.parent)
            except (UserError, LookupError):
                continue  # Another's study; its own start tells what is wrong.

    def add(self, place: Path) -> None:
        """Add a record of this study."""
        self._add(self.sources[HERE], self._records, place)

    def seconds(self, place: Path) -> tuple[float, str]:
        """Return a measurement's estimated seconds and their source: the closest, ours first."""
        for like in _likes(place):
            for name, seconds in self.sources.items():
                if like in seconds:
                    return fmean(seconds[like]), name
        return GUESSED_SECONDS, f"guessed at {GUESSED_SECONDS} s, the demo's on two cores"

    def total(self, places: list[Path]) -> float:
        """Return the estimated seconds of measurements one after another."""
        return sum(self.seconds(place)[0] for place in places)

    def time_needed(self, places: list[Path]) -> str:
        """Describe how long measurements take one after another, and how that is known."""
        basis = Counter(self.seconds(place)[1] for place in places)
        said = ", ".join(f"{count} {name}" for name, count in basis.most_common())
        return f"about {duration(self.total(places))} one after another ({said})"

    def _read(self, name: str, folder: Path) -> None:
        seconds = self.sources[name] = defaultdict(list)
        for kind in stored.RECORDS:
            for path in folder.glob(f"{kind}/**/*.json"):
                self._add(seconds, folder, path.relative_to(folder))

    def _add(self, seconds: dict[str, list[float]], folder: Path, place: Path) -> None:
        try:
            found = files.read_json(folder / place)
            ends = [
                datetime.fromisoformat(found["environment"][key]) for key in ("started", "ended")
            ]
            took = float(found.get("run_seconds") or (ends[1] - ends[0]).total_seconds())
            if place.name == "run.json":
                took *= self._epochs(place) / max(row["epoch"] for row in found["epochs"])
        except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return  # Some old ones have no duration, and some runs no epoch.
        if 0 < took < math.inf:
            for like in _likes(place):
                seconds[like].append(took)

    def _epochs(self, place: Path) -> int:
        training = self._config["training"]
        full: int = self._config["time_to_accuracy"]["epochs"]
        grid: int = training["warmup_epochs"] + training["measured_epochs"]
        return full if place.parts[0] == "to_accuracy" else grid


def _likes(place: Path) -> list[str]:
    """Return a measurement's keys from specific to general: itself, its cell, its recipe, kind."""
    folders = [one for one in place.parts[:-1] if not one.startswith(("seed~", "repeat~"))]
    cell, recipe = "/".join(folders), "/".join(folders[:3])
    return [place.as_posix(), cell, recipe, f"{folders[0]} {place.name}"]


def duration(value: float) -> str:
    """Format a duration: `40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def disk_needed(config: dict[str, Any], count: int, results: Path, *, images: bool) -> str:
    """Describe the disk space that `count` measurements and `images` need, and what is free."""
    needed = float(count * GUESSED_BYTES)
    if images:
        dataset = config["dataset"]
        own = 3072 * (dataset["train_images"] + dataset["test_images"])
        scale = (dataset.get("image_size", 32) / 32) ** 2
        needed += scale * IMAGE_BYTES.get(dataset["source"], own)
    free = fmt.data(shutil.disk_usage(results.parent).free)
    return f"about {fmt.data(needed)} of disk, of which {free} are free"
