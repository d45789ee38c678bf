"""Correct the dates of files by what records say: copies and clocks change them."""

import math
import os
import re
from contextlib import suppress
from pathlib import Path

from scaling.config import stored
from scaling.core import files
from scaling.core.errors import UserError


def keep_dates(records: Path, manifest: Path) -> None:
    """Make the manifest older than every record that names its images, and newer than all others.

    Snakemake decides by dates what is measured again, but a record is valid for the images that it
    names. A record that names none stays older or newer than the manifest as it was, unless all
    others name these images. Trained weights become older than the records made from them.
    """
    dates = {path: path.stat().st_mtime for path in _records(records)}
    named, own = {path: _value(path, "checksum") for path in dates}, _value(manifest, "checksum")
    if own not in named.values():
        return
    dated, others = manifest.stat().st_mtime, bool(set(named.values()) - {own, ""})
    stale = [
        path
        for path, images in named.items()
        if images != own and (images or (others and dates[path] < dated))
    ]
    _date(manifest, *(date for path, date in dates.items() if path not in stale))
    for path in stale:
        _date(path, manifest.stat().st_mtime - 1)
    for name, prefix in (("float32.pt", ""), ("resnet18.pt", "resnet18_")):
        for weights in records.glob(f"quantization/seed~*/{name}"):
            trained = _value(weights.with_name(f"{prefix}training.json"), "ended")
            made = [path for path in dates if weights.parent in path.parents]
            made = [path for path in made if path.name.startswith("resnet18") == bool(prefix)]
            if trained and all(_value(path, "started") >= trained for path in made):
                _date(weights, *(dates[path] for path in made))


def _records(folder: Path) -> list[Path]:
    found = [folder / path for path in stored.own_files(folder) if path.suffix == ".json"]
    return [path for path in found if not path.name.endswith("training.json")]


def _date(path: Path, *latest: float) -> None:
    """Set a file's date to the earliest of `latest` if it is newer."""
    if min(latest, default=math.inf) < path.stat().st_mtime:
        os.utime(path, (min(latest), min(latest)))


def _value(path: Path, key: str) -> str:
    """Return the first text value of `key` in a JSON file, or ""."""
    with suppress(UserError):
        found = re.search(rf'"{key}": *"([^"]+)"', files.read_text(path))
        return found[1] if found else ""
    return ""
