"""What each rank of a run reports, line by line, so that nothing is lost when a rank dies.

A rank appends JSON lines to its own file between epochs, never inside one:
`start` (versions, host, parameters), `startup` (when each phase of it ended), `epoch` (an
EpochRow), `trained` (no more of them), `outcome` (status, message, time of a rank that had to stop;
of one whose steps got no further the last ones launched and finished), `end` of what is measured
(memory, communication, evaluation, parameters_sha256, applied, compiled_batch_sizes,
compiled_graphs, flops_per_image, activation_bytes_per_image) and `readings` of the instruments
after it (in_memory, readings, device_time, seconds since the start).
A signal that ends a rank leaves `stacks` (text: what its threads were doing).
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

    @contextmanager
    def stacks_kept(self) -> Iterator[None]:
        """Within the block SIGTERM, or a fatal signal, leaves `stacks` before the process ends.

        They are written by a signal handler in C: a rank that hangs inside a library answers too.
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
    """All ranks' lines, by rank; a last line cut short by a kill is left out."""
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
    """Group the lines, in order; a kind without lines has none."""
    found: LinesByKind = defaultdict(list)
    for line in lines:
        found[line["kind"]].append(line)
    return found


def _rank(path: Path) -> int:
    return int(path.stem.removeprefix("rank"))
