"""The reports of each rank, one JSON line each, so that nothing is lost when a rank dies.

A rank appends lines to its own file between epochs, never inside one:
`start` (versions, host, parameters), `startup` (the end of each start-up phase), `epoch` (an
EpochRow), `trained` (the last epoch is over), `outcome` (status, message and time of a rank that
had to stop; after a stall also the last steps launched and finished), `end` (memory,
communication, evaluation, parameters_sha256, applied, compiled_batch_sizes, compiled_graphs,
flops_per_image, activation_bytes_per_image) and `readings` of the instruments after it
(in_memory, readings, device_time, seconds since the start).
A signal that ends a rank adds `stacks` (text: the stacks of its threads).
"""

import faulthandler
import json
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LinesByKind = dict[str, list[dict[str, Any]]]


class RankLog:
    """Append one rank's reports to `folder/rank{rank}.jsonl`."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"rank{rank}.jsonl"
        self.rank = rank

    def append(self, kind: str, content: dict[str, Any]) -> None:
        """Append one line; it is on disk when this returns."""
        line = json.dumps({"kind": kind, "rank": self.rank, **content}, allow_nan=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    @contextmanager
    def stacks_kept(self) -> Iterator[None]:
        """Within the block, SIGTERM or a fatal signal logs `stacks` before the process ends.

        A signal handler in C writes them, so a rank that hangs inside a library is covered too.
        """
        with self._path.with_suffix(".stacks").open("w", encoding="utf-8") as file:
            faulthandler.enable(file)
            faulthandler.register(signal.SIGTERM, file, chain=True)
            try:
                yield
            finally:
                faulthandler.unregister(signal.SIGTERM)
                faulthandler.disable()


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """Return all ranks' lines, by rank, without a last line that a kill cut short."""
    lines = []
    for path in sorted(folder.glob("rank*.jsonl"), key=_rank):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                lines.append(json.loads(line))
    for path in sorted(folder.glob("rank*.stacks"), key=_rank):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text:
            lines.append({"kind": "stacks", "rank": _rank(path), "text": text})
    return lines


def by_kind(lines: list[dict[str, Any]]) -> LinesByKind:
    """Group the lines by kind, in order; a missing kind has an empty list."""
    found: LinesByKind = defaultdict(list)
    for line in lines:
        found[line["kind"]].append(line)
    return found


def _rank(path: Path) -> int:
    return int(path.stem.removeprefix("rank"))
