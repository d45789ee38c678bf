"""The reports of each rank, one JSON line each, so that nothing is lost when a rank dies.

Kinds of lines: `start` (versions), `startup` (seconds), `epoch` (an EpochRow), `outcome` (of a rank
that had to stop), `end`, `readings` of the instruments, and `stacks` where a signal ended a rank.
"""

import faulthandler
import json
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LinesByKind = dict[str, list[dict[str, Any]]]


class RankLog:
    """Append one rank's reports to `folder/rank{rank}.jsonl`."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._path = folder / f"rank{rank}.jsonl"
        self.rank = rank

    def append(self, kind: str, content: dict[str, Any]) -> None:
        """Append one line; it is on disk when this returns."""
        line = json.dumps({"kind": kind, "rank": self.rank, **content}, allow_nan=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    @contextmanager
    def stacks_kept(self) -> Iterator[None]:
        """Within the block, SIGTERM or a fatal signal logs `stacks`, even of a hanging library."""
        with self._path.with_suffix(".stacks").open("w", encoding="utf-8") as file:
            faulthandler.enable(file)
            faulthandler.register(signal.SIGTERM, file, chain=True)
            try:
                yield
            finally:
                faulthandler.unregister(signal.SIGTERM)
                faulthandler.disable()


def read(folder: Path) -> LinesByKind:
    """Return all lines by kind and rank, without a last line that a kill cut short."""
    found = []
    for path in folder.glob("rank*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".jsonl":
            found += [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]
        elif text:
            rank = int(path.stem.removeprefix("rank"))
            found.append({"kind": "stacks", "rank": rank, "text": text})
    return by_kind(sorted(found, key=lambda line: line["rank"]))


def by_kind(lines: Iterable[dict[str, Any]]) -> LinesByKind:
    """Group the lines by kind, in order; a missing kind has an empty list."""
    found: LinesByKind = defaultdict(list)
    for line in lines:
        found[line["kind"]].append(line)
    return found
