"""The record of a stored study on what two ranks send and share, for tests to change."""

import json
from typing import Any

from examples import stored


def document() -> dict[str, Any]:
    """The record; its first step is that of DDP, its trainings alternate in `set_epoch`."""
    folder = stored.folder_of(stored.FLAGSHIP)
    text = (folder / "experiments/gpus~2/synchronization.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def message(phase: str, kind: str, size: int) -> dict[str, Any]:
    """A message of the third step, in which DDP has settled."""
    shared = {"step": 3, "phase": phase, "kind": kind, "dtype": "float32"}
    return {**shared, "elements": size // 4, "bytes": size}
