"""Read files, and write them atomically: a file is complete or absent."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import Any

from scaling.core.errors import UserError

LOG_LINE, LOG_BYTES = 2_000, 1_000_000
"""Maximum characters of a line of output, and maximum bytes of a log file."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield the path of a temporary file. If the `with` block succeeds, rename it to `target`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o644)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from error


def write_text(target: Path, text: str) -> None:
    """Write `text` to `target` atomically, as UTF-8."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def log_end(source: Path) -> str:
    """Return the end of a log: at most 40 lines and 8,000 characters."""
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-40:])[-8000:] + "\n"


def bound_log(log: Path) -> None:
    """Cut out the middle of a log that is larger than `LOG_BYTES`."""
    left_out = log.stat().st_size - LOG_BYTES if log.exists() else 0
    if left_out > 0:
        with log.open("rb") as file:
            start = file.read(LOG_BYTES // 2)
            file.seek(left_out, os.SEEK_CUR)
            both = start, file.read()
        note = f"\n… {left_out:,} bytes of this log are left out here …\n"
        write_text(log, note.join(part.decode(errors="replace") for part in both))


def write_json(target: Path, document: Any) -> None:
    """Write `document` to `target` atomically, as indented JSON; NaN and infinity are errors."""
    write_text(target, json.dumps(document, indent=1, allow_nan=False) + "\n")


def regular(source: Path, most_bytes: int = 50_000_000, *, within: Path | None = None) -> Path:
    """Return the path `source` if it is a file of at most `most_bytes`; else raise UserError.

    If `within` is given, links out of this folder are errors, too.
    """
    try:
        if within and not source.resolve().is_relative_to(within.resolve()):
            raise UserError(f"{source} is a link out of {within}; put the file itself there")
        status = source.stat()
    except FileNotFoundError as error:
        raise UserError(f"{source} does not exist") from error
    except (OSError, RuntimeError) as error:
        raise UserError(f"{source} cannot be read ({error})") from error
    if not S_ISREG(status.st_mode) or status.st_size > most_bytes:
        raise UserError(f"{source} is no file of at most {most_bytes:,} bytes; give one")
    return source


def read_text(source: Path, most_bytes: int = 50_000_000) -> str:
    """Return the text of a file; raise UserError if it is unreadable, too large, or not UTF-8."""
    try:
        return regular(source, most_bytes).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{source} cannot be read as UTF-8 text ({error})") from error


def to_do(damaged: Path) -> str:
    """Return advice on a damaged file: restore it, or delete it if a job can make it again."""
    parts = Path(os.path.relpath(damaged)).parts
    made = "studies" not in parts and not {"results", "resources"}.isdisjoint(parts)
    return "restore it" + (", or delete it so that it is made again" if made else "")


def read_json(source: Path, most_bytes: int = 50_000_000) -> Any:
    """Return the JSON document in `source`; raise UserError if it is too large or invalid."""
    try:
        document = json.loads(read_text(source, most_bytes), parse_constant=float)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source} is not valid JSON ({error}): {to_do(source)}") from error
    return document
