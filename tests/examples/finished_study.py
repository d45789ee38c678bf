"""What a finished study leaves: the stored one of a CPU, laid out again."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored

SOURCE = Path(__file__).parents[1] / "snapshots/studies/cpu"
CONFIG: dict[str, Any] = stored.read(SOURCE)
FILES = sorted(path.as_posix() for path in stored.own_files(SOURCE))
"""All of the stored study."""


def make(folder: Path, **changes: Any) -> None:
    """Write results/ and resources/ of `CONFIG`, its top keys changed, below `folder`."""
    results, dataset = folder / "results", folder / "resources/dataset/digits"
    shutil.copytree(SOURCE, results, dirs_exist_ok=True)
    dataset.mkdir(parents=True, exist_ok=True)
    (results / "manifest.json").rename(dataset / "manifest.json")
    (results / "quantization/seed~0/float32.pt").write_bytes(b"weights")
    (results / "config.yaml").write_text(yaml.safe_dump(CONFIG | changes, sort_keys=False))


def files(folder: Path) -> list[str]:
    """The files in `folder`, hidden ones too, in order."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in paths)
