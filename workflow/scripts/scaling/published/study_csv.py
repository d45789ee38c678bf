"""CSV files that people write by hand, checked field by field."""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from scaling.core.errors import UserError

Parser = Callable[[str], Any]
"""From a field's text to its value; a ValueError says what the text should have been."""

MOST_GPUS = 10**6
LARGEST_COUNT = 10**12
"""Times `MOST_GPUS`, a global batch still is a 64-bit integer."""
SHORTEST_SECONDS, LONGEST_SECONDS = Decimal("1e-6"), Decimal("1e9")
LARGEST_FIGURE, MOST_DECIMALS = Decimal("1e15"), 30
"""What a document may print: where floats still tell its last digit from 0 and from infinity."""


def read_rows(
    path: Path, columns: Mapping[str, Parser], optional: Mapping[str, Parser]
) -> Iterator[dict[str, Any]]:
    """Every row of the CSV file at `path`, its fields parsed, and its number as `line`.

    A row has the keys of `columns` and those of `optional` that the file has; other columns are
    passed over. Raises UserError, which names file, line and column, when the file is no CSV, a
    column is missing, a row has too few or too many fields, or a field does not parse.
    """
    try:
        # utf-8-sig: spreadsheets put a byte order mark before the first column's name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            missing = [column for column in columns if column not in header]
            if missing:
                raise UserError(_no_column(path, missing[0], header))
            known = {
                name: parse for name, parse in {**optional, **columns}.items() if name in header
            }
            for row in reader:
                line = reader.line_num
                if None in row or None in row.values():
                    raise UserError(
                        f"{path}, line {line}: the line has not as many fields as the first one; "
                        "count its commas"
                    )
                yield {
                    "line": line,
                    **{name: _field(path, line, name, row[name], known[name]) for name in known},
                }
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; make it, or name another folder") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{path} cannot be read as a CSV table ({error}); save it as one"
        ) from error


def text(field: str) -> str:
    """Words; empty is allowed."""
    return field


def name(field: str) -> str:
    """A word that can be part of a path."""
    if not field or field.startswith(".") or not all(c.isalnum() or c in "._-" for c in field):
        raise ValueError("a name of letters, digits, '.', '_' and '-'")
    return field


def one_of(*allowed: str) -> Parser:
    """One of `allowed`."""

    def parse(field: str) -> str:
        if field not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return field

    return parse


def count(field: str) -> int:
    """A whole number, 1 or more."""
    wanted = "a whole number, 1 or more"
    value = _decimal(field, wanted)
    if value < 1 or value != value.to_integral_value():
        raise ValueError(wanted)
    if value > LARGEST_COUNT:
        raise ValueError(f"{wanted}, and no more than {LARGEST_COUNT:,}")
    return int(value)


def gpus(field: str) -> int:
    """A number of GPUs."""
    value = count(field)
    if value > MOST_GPUS:
        raise ValueError(f"a number of GPUs, no more than {MOST_GPUS:,}")
    return value


def one(field: str) -> int:
    """The number 1."""
    if count(field) != 1:
        raise ValueError("1, as these are times on one GPU")
    return 1


def seconds(field: str) -> float:
    """A time above 0; empty is unknown (NaN)."""
    value = _decimal(field, "a number, or empty") if field else None
    if value is not None and value <= 0:
        raise ValueError("a time above 0, or empty")
    if value is not None and not SHORTEST_SECONDS <= value <= LONGEST_SECONDS:
        raise ValueError(
            f"the seconds of an epoch, from {SHORTEST_SECONDS:f} to {LONGEST_SECONDS:,f}, or empty"
        )
    return math.nan if value is None else float(value)


def figure(field: str) -> Decimal | None:
    """A number with the digits it was printed with; empty is none."""
    if not field:
        return None
    value = _decimal(field, "a number, or empty")
    power = int(value.as_tuple().exponent)
    if abs(value) > LARGEST_FIGURE or not -MOST_DECIMALS <= power <= LARGEST_FIGURE.adjusted():
        raise ValueError(
            f"a number below 10^{LARGEST_FIGURE.adjusted()} with at most {MOST_DECIMALS} decimals, "
            "or empty"
        )
    return value


def or_none(parse: Parser) -> Parser:
    """What `parse` takes, or an empty field (None)."""
    return lambda field: parse(field) if field else None


def _decimal(field: str, wanted: str) -> Decimal:
    try:
        value = Decimal(field)
    except InvalidOperation as error:
        raise ValueError(wanted) from error
    if not math.isfinite(float(value)):
        raise ValueError(wanted)
    return value


def _no_column(path: Path, missing: str, header: Sequence[str]) -> str:
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            return f"{path}, line 1: the columns are separated by {name}; separate them by commas"
    return f"{path}, line 1: there is no column {missing}; add it"


def _field(path: Path, line: int, column: str, field: str, parse: Parser) -> Any:
    try:
        return parse(field.strip())
    except ValueError as error:
        raise UserError(
            f"{path}, line {line}, column {column}: {field!r} should be {error}"
        ) from error
