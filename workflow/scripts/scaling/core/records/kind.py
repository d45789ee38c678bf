"""Kinds of records, checked when they are written and read by what their words mean."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from annotated_types import Ge, Gt, Interval, Len
from pydantic import AllowInfNan, Strict, TypeAdapter, ValidationError

from scaling.core import files
from scaling.core.errors import UserError

VERSION = 1
"""Of what is written; records without one are older, and have no checksum either."""
TO_DO = "restore it, or delete it so that it is made again"
Record = TypeVar("Record")
Row = dict[str, Any]

Status = Literal["ok", "oom", "oom_host", "infeasible", "diverged", "timeout"]
Role = Literal["warmup", "measured", "instrumented"]
_Whole = Annotated[int, Strict(), Interval(ge=0, lt=2**63)]
_Float = Annotated[float, Strict(), AllowInfNan(False)]
_Amount = Annotated[_Float, Ge(0)]
_Seconds = Annotated[_Float, Gt(0)]
_Wholes = _Whole | list[_Whole] | list[Row]
_Times = _Seconds | Annotated[list[_Seconds], Len(1)] | dict[str, list[_Seconds]]
_Text = Annotated[str, Strict()]
WORDS: dict[str, Any] = {
    "capacity_bytes": _Amount,
    r"rank|gpus|seeds?|repeat|epoch|iterations|samples|batch_size|kernels|gained|lost|unseen|"
    r"matrix_size|updates\w*|\w+_(bytes|images|epochs|updates|batch|sizes|shape|threads)": _Wholes,
    r"seconds|seconds_without\w*|run_seconds": _Times,
    r"(loader|busy|communication|overlapped)_seconds|\w+_(loss|rate|joules|factor)": _Amount,
    r"losses|\w+_(mhz|per_image)": _Amount | list[_Float | None],
    r"\w+_accuracy": Annotated[_Float, Interval(ge=0, le=1)],
    r"\w+_percent": Annotated[_Float, Interval(ge=0, le=100)],
    "role": Role,
    "status": Status | Literal["measured", "not installed", "failed"],
    r"correct|chosen|at_edge|held_out|set_epoch|ranks_agree|settled": Annotated[bool, Strict()],
    r"remedy|variant|stage|backend|quantity|layer|knob|estimate|message|topology|"
    r"device|note|started|ended|diverged": _Text,
    r"hosts|device_\w+s|slurm_gpus|parameters_sha256": list[_Text] | list[Row] | _Text,
    r"rows|readings|in_memory|stages|layers|findings|trainings|messages|runs": list[Row],
    r"cell|training|communication|environment|evaluation|result|memory|settling|startup": Row,
}
"""What stands under a key, wherever in a record; null may too, where a kind does not need it."""


@cache
def _meaning(word: str) -> TypeAdapter[Any] | None:
    found = (own for pattern, own in WORDS.items() if re.fullmatch(pattern, word))
    return next((TypeAdapter(own | None) for own in found), None)


@dataclass(frozen=True)
class Kind(Generic[Record]):
    """A kind of record: what its rows need, by place (with "?" null too), and what contradicts."""

    what: str
    needs: Mapping[str, str]
    upgrade: Callable[[Any], object] = lambda _: None
    contradictions: Callable[[Any], Iterator[str]] = lambda _: iter(())

    def read(self, path: Path) -> Record:
        """Read the record at `path`, upgraded; UserError where it is missing or not sound."""
        record = files.read_json(path)
        signed = isinstance(record, dict) and not record.keys().isdisjoint(("version", "sha256"))
        if signed and record.pop("sha256", None) != _checksum(record):
            raise UserError(f"{path} is not as it was written (its checksum differs): {TO_DO}")
        if signed and record.pop("version", None) != VERSION:
            raise UserError(f"{path} has another version than {VERSION}: read it by newer code")
        if said := self._wrong(record, path, older=not signed):
            raise UserError(f"{path} is no sound record of {self.what} ({said[:300]}): {TO_DO}")
        found: Record = record
        return found

    def write(self, path: Path, record: Record) -> None:
        """Write `record`, checked as `read` does it, with version and checksum."""
        content: Any = record
        if said := self._wrong(content, path):
            raise UserError(f"{path} is not written, as no record of {self.what} is so: {said}")
        content = content | {"version": VERSION}
        files.write_json(path, content | {"sha256": _checksum(content)})

    def _wrong(self, record: Any, path: Path, older: bool = False) -> str | None:
        """What is wrong with a record, and where in it."""
        try:
            if older:
                self.upgrade(record)
            told = chain(self._rows(record), _misplaced(record, path), self.contradictions(record))
            return next(told, None)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return f"a value is missing, of another kind or impossible: {error!r}"

    def _rows(self, value: Any, place: str = "") -> Iterator[str]:
        """What is wrong with the rows in `value`, each for itself."""
        for row in value if isinstance(value, list) else ():
            yield from self._rows(row, place)
        if not isinstance(value, dict):
            return
        for word in self.needs.get(place, "").split():
            if word.rstrip("?") not in value or (word[-1] != "?" and value[word] is None):
                yield f"{place or 'it'} has no {word.rstrip('?')}"
        for word, inner in value.items():
            if meaning := _meaning(word):
                try:
                    meaning.validate_python(inner)
                except ValidationError as error:
                    yield f"{f'{place}.{word}'.lstrip('.')}: {error.errors()[0]['msg']}"
            if not word.endswith("options"):
                yield from self._rows(inner, f"{place}.{word}".lstrip("."))


def _misplaced(record: dict[str, Any], path: Path) -> Iterator[str]:
    """What `path` says, in its folders `key~value`, and the record does not."""
    own = record | record.get("cell", {})
    told = dict(part.split("~", 1) for part in path.parts if "~" in part)
    if "seed" in told and own.get("repeat"):
        told.setdefault("repeat", "0")
    for key, value in told.items():
        if key in own and str(own[key]) != value:
            yield f"its {key} is {own[key]}, that of its folder {value}"


def _checksum(record: dict[str, Any]) -> str:
    """SHA-256 of a record's content, however it is laid out."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
