"""Split a file into tables of fields, and tell what a field holds and by which words it is called.

Tables are CSV of any kind, Markdown, aligned columns or the sheets of a workbook.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from zipfile import ZipFile

import pandas as pd
from pydantic import AfterValidator, BaseModel, Field

from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records.kind import Status

MOST_BYTES, MOST_ROWS, MOST_SHEET_ROWS = 10 * 10**6, 100_000, 2000
"""Limits of a file, and of a sheet of a workbook: a study has a few dozen rows."""
Records = list[tuple[int, list[str]]]
"""Lines by their number, as fields."""
RULE = re.compile(r"(?i)(?=.*-)[|:+=\s-]*|\s*\"?sep=.*", re.DOTALL)
"""What only draws a rule, as below a header in Markdown, or names the separator."""
VALUE = re.compile(r"[~≈<>(* ]*[-+−]?[.,]?\d")


def _digits(value: Decimal) -> Decimal:
    """Refuse what floats do not tell from 0 or infinity."""
    if not -30 <= value.adjusted() <= 15:
        raise ValueError("Input should be between 10^-30 and 10^15")
    return value


Name = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]
"""Letters, digits, ".", "_" and "-": a part of a path."""
Gpus = Annotated[int, Field(ge=1, le=10**6)]
Count = Annotated[int, Field(ge=1, le=10**12)]
Time = Annotated[Decimal, Field(ge=Decimal("1e-6"), le=10**9)]
Printed = Annotated[Decimal, AfterValidator(_digits)]
"""A time and a printed figure with their digits."""
NOT_STATED: Literal["not stated"] = "not stated"


class Timing(BaseModel):
    """A row of timings.csv. `status` is None where a table has no such column."""

    study: Name
    gpus: Gpus
    batch_size: Count
    strategy: Literal["dp", "ddp", "not stated"] = NOT_STATED
    model: Name = NOT_STATED
    parameters: Count | None = None
    status: Status | None = None
    epoch_seconds: Time | None = None
    epoch_seconds_without_loading: Time | None = None
    printed_speedup: Printed | None = None
    printed_compute_seconds: Printed | None = None
    printed_communication_seconds: Printed | None = None
    printed_bandwidth_gb_per_s: Printed | None = None
    printed_utilization_percent: Printed | None = None
    count: Count | None = None
    epoch_seconds_min: Time | None = None
    epoch_seconds_max: Time | None = None


GPU = r"(?:\w*gpus?|devices?|cards?|ranks?|world size|n?procs?|processes)"
IMAGE = r"(?:im(?:age|g)s?|samples?|examples?)"
STEP = r"(?:it|iter|iterations?|steps?|batch(?:es)?)"
FIELDS = {
    "printed_utilization_percent": r"\butil(?!.*\b[kmg]i?b)",
    "throughput": rf"throughput|\b{IMAGE} ?(?:per|/) ?s(?:ec(?:ond)?)?\b",
    "printed_bandwidth_gb_per_s": r"bandwidth|\bbw\b|\b[kmgt](?:i?b|bit)(?:/| per )s|[kmgt]bps",
    "printed_speedup": r"speed ?up|\bspeed\b|\bsu\b|beschleunig",
    "printed_compute_seconds": r"\bcomp(?:ut|\b)",
    "epoch_seconds_without_loading": r"\b(?:w/?o|without|excl\w*|no)\b.*(?:load|data|\bi/?o\b)",
    "without another part": r"\b(?:w/?o|without|excl\w*)\b",
    "printed_communication_seconds": r"\bcomm|all ?reduce|exchange",
    "epoch_seconds": r"\b(?:incl\w*|with|w/)\b.*load",
    "?seconds or the speedup": r"^s$",
    "": r"\bstd|deviat|varian|error|loss|\bacc|\blr\b|memory|worker|effic|load|per node|epochs$",
    "of a step": rf"(?:per|/) ?{STEP}\b|\b{STEP} (?:time|ms)|\b{STEP} ?/ ?s",
    "?minutes or the minimum": r"(?:time|epoch) min$|^min$",
    "epoch_seconds_max": r"\bmax(?:imum)? |slowest|(?:time|epoch).* max\b",
    "epoch_seconds_min": r"^min(?:imum)? |fastest|(?:time|epoch) s\w* min\b",
    "time": r"time|second|\b(?:secs?|m?s|t|min|minutes|hours|h|total(?! batch))\b|durat|elaps|zeit",
    "batch_size": rf"batch|\bbs\b|^b$|^{IMAGE}$",
    "gpus": rf"\b{GPU}\b|^[np]$",
    "parameters": r"\bparam",
    "model": r"\bmodel|network|architect",
    "strategy": r"strateg|method|parallel|\bmode\b",
    "status": r"status|\bstate\b|outcome",
    "study": r"\bstudy|experiment|\bgroup\b|\bteam\b|author|student",
    "count": r"^(?:n )?(?:count|runs|repeats)$",
}
"""Patterns of each field's names, tried in order; the field "" is ignored."""
VALUES = {
    "batch_size": rf"(?:batch(?: ?size)?|\bbs|\bb)(?: ?(?:per|/) ?{GPU})?(?: of)? ?[=:]? ?(\d+)"
    rf"|(\d+) ?(?:{IMAGE})? ?(?:per|/) ?{GPU}|(\d+) batch",
    "gpus": rf"(\d+) ?[x×]? ?{GPU}\b|\b{GPU} ?[=:]? ?(\d+)|\bn ?[=:]? ?(\d+)"
    r"|^(\d+) ?[x×]? ?(?:[avhptl]\d|rtx|gtx|tesla|nvidia)",
}
"""Patterns of labels that contain a value, such as `Batch size 32 per GPU`."""
STRATEGIES = {"ddp": r"\bddp\b|distributed(?: data parallel)?", "dp": r"\bdp\b|data ?parallel"}
UNITS = {
    "60": r"[(\[/ ]min\w*[)\]]|\bin min|minutes|mins\b",
    "0.001": r"\bms\w*\b|milli|\bmb(?:/| per|ps)",
    "3600": r"\b(?:h|hrs?|hours?)\b",
    "0.125": r"[gG]bit|Gb(?:/|ps)",
    "1.073741824": r"\bgib",
    "0.001048576": r"\bmib",
    "1": r"\bs(?:ecs?)?\b|second|\bgb",
}
"""Patterns of units, by their factor to seconds or GB/s."""
MISSING = {"-", "–", "—", "--", "---", "−", "n/a", "na", "nan", "none", "null", "/", "?", "#n/a"}
OOM = re.compile(r"(?i)(?:cuda |gpu )?(?:oom|out.of.memory)(?: error)?")
NUMBER = re.compile(
    r"[~≈ ]*([-+−]?\d[\d.,' \u00a0\u202f]*(?:[eE][-+]?\d+)?) ?(?:±.*|\(.*\))? ?([%x×]|[a-zA-Zµ/]*)"
)


class Label(NamedTuple):
    """The meaning of a label: a `field` of `Timing` or `FIELDS`, and the `values` that it fixes.

    A number counts `factor` seconds or GB/s. A rate may be `per_gpu`, a batch or time the `whole`.
    """

    text: str
    field: str
    values: dict[str, str]
    factor: Decimal | None = None
    per_gpu: bool = False
    whole: bool = False


@lru_cache(10_000)
def label(text: str) -> Label:
    """Return the meaning of the label `text`."""
    if text.strip().lower() in Timing.model_fields:
        return Label(text, text.strip().lower(), {}, Decimal(1))
    raw = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=\w)\(s\)|[\s_#*`$-]+", " ", text[:200]).strip()
    if cell := re.fullmatch(r"(\d+) ?[x×] ?(\d+)", raw):
        return Label(text, "", {"gpus": cell[1], "batch_size": cell[2]})
    plain, values = raw.lower(), dict[str, str]()
    for field, pattern in VALUES.items():
        if found := re.search(pattern, plain):
            values[field] = next(filter(None, found.groups()))
            plain = plain.replace(found[0], " ", 1)
    for strategy, pattern in STRATEGIES.items():
        if re.search(pattern, plain):
            values["strategy"], plain = strategy, re.sub(pattern, " ", plain)
    rest = re.sub(rf"(?:per|/) ?{GPU}", " ", plain).strip()
    units = (x for x, pattern in UNITS.items() if re.search(pattern, f"{raw} {rest}"))
    return Label(
        text,
        next((field for field, pattern in FIELDS.items() if re.search(pattern, rest)), ""),
        values,
        next(map(Decimal, units), None),
        per_gpu=rest != plain.strip(),
        whole=bool(re.search(r"global|total|effective|overall|full|wall", rest)),
    )


def number(text: str, comma: bool) -> tuple[str, Decimal | None] | None:
    """Return the digits of a number and its unit's factor; `comma` means a decimal comma."""
    found = NUMBER.fullmatch(text.strip("* `$"))
    if not found or (found[2].isalpha() and found[2] != "x" and not label(f"({found[2]})").field):
        return None
    digits = re.sub(r"[ '\u00a0\u202f]", "", found[1]).replace("−", "-")
    if comma:
        digits = digits.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", digits):
        digits = digits.replace(",", "")
    return (digits, label(f"({found[2]})").factor) if "," not in digits else None


class Grid(NamedTuple):
    """A table of texts: caption, number of its first line, header, rows and field separator."""

    caption: str
    line: int
    header: list[list[str]]
    rows: Records
    separator: str


def grids(path: Path) -> list[Grid]:
    """The tables of the file at `path`; UserError if it cannot be read, or a row is too long."""
    try:
        data = files.regular(path, MOST_BYTES, within=path.parent).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    if not data.startswith(b"PK"):
        return list(_grids(path, *_records(path, data)))
    try:
        with ZipFile(BytesIO(data)) as book:
            if sum(part.file_size for part in book.infolist()) > MOST_BYTES:
                raise ValueError("it has too many cells")
        sheets = pd.read_excel(
            path, None, header=None, dtype=str, keep_default_na=False, nrows=MOST_SHEET_ROWS
        )
        if any(len(sheet) == MOST_SHEET_ROWS for sheet in sheets.values()):
            raise ValueError(f"it has {MOST_SHEET_ROWS:,} lines")
    except Exception as error:  # A reader of workbooks raises whatever it meets.
        raise UserError(f"{path} cannot be read as a workbook ({error}); save it as CSV") from error
    found = list[Grid]()
    for name, sheet in sheets.items():
        cells = sheet.fillna("").map(lambda cell: str(cell).strip()).to_numpy().tolist()
        found += _grids(path, list(enumerate(cells, 1)), "sheet", str(name))
    return found


def _records(path: Path, data: bytes) -> tuple[Records, str]:
    """Return the lines of a text file, split into fields, and what separates them.

    The text is UTF-8, UTF-16, or Windows' Latin-1.
    """
    text = "\0"
    for codec in ("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "cp1252"):
        with suppress(UnicodeError):
            text = data.decode(codec) if "\0" in text else text
    if "\0" in text:
        raise UserError(f"{path} cannot be read as text; save it as UTF-8 text")
    lines = text.splitlines(keepends=True)
    if len(lines) > MOST_ROWS:
        raise UserError(f"{path}: there are more than {MOST_ROWS:,} lines; hand in fewer")
    lines = ["\n" if RULE.fullmatch(line) else line for line in lines]
    bars = any(line.startswith("|") for line in lines)
    for separators in ([r"\|"] if bars else ["\t", ";", ",", r"\|"], [r"\s{2,}"], [r"\s+"]):
        choices = {one: _split(lines, one) for one in separators}
        best = max(choices, key=lambda one: _alike(choices[one]))
        if _alike(choices[best]):
            break
    return choices[best], best


def _split(lines: list[str], separator: str) -> Records:
    """Return the numbers and fields of lines; of Markdown without its outer bars and emphasis."""
    if len(separator) == 1:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t")
        return [(reader.line_num, [field.strip() for field in fields]) for fields in reader]
    inner = (line.strip().removeprefix("|").removesuffix("|") for line in lines)
    rows = (re.split(separator, line) for line in inner)
    return [(n, [field.strip(" \t*`") for field in row]) for n, row in enumerate(rows, 1)]


def _alike(lines: Records) -> int:
    """Return how many lines share the most common number of fields, if that is more than one."""
    return max(Counter(len(fields) for _, fields in lines if len(fields) > 1).values(), default=0)


def _grids(path: Path, lines: Records, separator: str, name: str = "") -> Iterator[Grid]:
    """Split lines into tables: each header line starts one, and lines of text may precede it."""
    texts, header, rows, first = [name], list[list[str]](), Records(), 0
    for line, fields in [*lines, (0, ["the end"])]:
        heads = any(fields) and (not header or _heads(fields))
        if rows and (heads or (any(fields) and len(fields) == 1)):
            yield Grid(" ".join(filter(None, texts[-2:])), first, header, rows, separator)
            texts, header, rows = [name], [], []
        if sum(map(bool, fields)) == 1 and (len(fields) == 1 or not header):
            texts += [field.strip("# :") for field in fields if field]
        elif heads:
            first = first if header else line
            header.append(fields)
        elif any(fields):
            width = len(header[0])
            short = len(fields) < width and separator in (",", ";")
            if short or any(fields[width:]):
                raise UserError(
                    f"{path}, line {line}: the line has not as many fields as the first one; "
                    "count its commas"
                )
            rows.append((line, [*fields, *[""] * width][:width]))


def _heads(fields: list[str]) -> bool:
    """Return whether a line is a header: no number in it, or as `GPUs, 1, 2, 4`."""
    first, *others = filter(None, fields)
    if not any(VALUE.match(f) or f.lower() in MISSING or OOM.fullmatch(f) for f in fields):
        return True
    names = not VALUE.match(first) and label(first).field in ("gpus", "batch_size") and others
    return bool(names and all(other.isdecimal() or label(other).values for other in others))
