"""What each rank of a run reports, line by line, so that nothing is lost when a rank dies.

A rank appends JSON lines to its own file between epochs, never inside one:
`start` (versions, host), `epoch` (an EpochRow), `outcome` (status, message, time of a rank
that had to stop) and `end` (memory, communication, evaluation, applied,
readings).
"""

import json
from pathlib import Path
from typing import Any


class RankLog:
    """Appends one rank's reports to `folder/rank{rank}.jsonl`."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"rank{rank}.jsonl"
        self.rank = rank

    def append(self, kind: str, content: dict[str, Any]) -> None:
        """Add one line; it is on disk when this returns."""
        line = json.dumps({"kind": kind, "rank": self.rank, **content}, allow_nan=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """All ranks' lines, by rank; a last line cut short by a kill is left out."""
    lines = []
    for path in sorted(folder.glob("rank*.jsonl"), key=lambda path: int(path.stem[4:])):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                lines.append(json.loads(line))
    return lines
