"""Parse headers and fields of tables: quantities, units, and printed numbers."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scaling.config.stored import read_config

WORDS = read_config(Path(__file__).with_name("words.yaml"))


def _pattern(text: str) -> re.Pattern[str]:
    for name, part in WORDS["parts"].items():
        text = text.replace(f"{{{name}}}", part)
    return re.compile(text)


FIELDS = [(name, _pattern(text)) for name, text in WORDS["fields"]]
PATTERNS = {name: _pattern(text) for name, text in WORDS["patterns"].items()}
IDENTITY = {"gpus", "batch_size", "global_batch", "strategy", "model", "parameters", "hardware"}
IDENTITY |= {"status", "study", "recipe", "run", "count"}
"""Fields that identify a configuration. All other fields hold printed values."""


class Figure(NamedTuple):
    """A printed number in s, GB/s, images/s or without unit, and the step of its last digit."""

    value: float
    unit: float


class Head(NamedTuple):
    """A parsed header: `Epoch (ms), 2 GPUs` has field "epoch", words "epoch ms", factor 0.001."""

    text: str
    field: str
    words: str
    factor: float | None = None
    gpus: int | None = None
    batch: int | None = None


@cache
def plain(text: str) -> str:
    """Return a text without Markdown's emphasis, HTML tags and repeated spaces."""
    text = re.sub(r"\*\*|__|`|\\(?=[*_|])|<[^>]*>|\$", "", text.replace("\u00a0", " "))
    return re.sub(r"\s+", " ", text).strip(" *")


@cache
def unit(text: str) -> float | None:
    """Return the first unit in a text as a factor to s, GB/s or images/s: 0.001 for `ms`."""
    return next((factor for factor, one in WORDS["units"] if re.search(one, text)), None)


@cache
def head(text: str) -> Head:
    """Return the meaning of a header: quantity, unit, number of GPUs, batch size."""
    text = plain(text)
    split = re.sub(r"_|(?<=[a-z])(?<![kKMGT]i)(?<!\bk)(?=[A-Z])", " ", text)
    split = re.sub(r"^S\b", "speedup", split)
    split = re.sub(r"(?i)[(\[]min[)\]]|\bin min\b", "minutes", split)
    words = split.lower().replace("printed ", "").replace("-", " ")
    words, number = PATTERNS["reference"].sub("", words), dict[str, int]()
    if PATTERNS["other_reference"].search(words):
        return Head(text, "", words)
    for name in ("batch", "gpus"):
        if match := PATTERNS[name].search(words):
            number[name] = int(next(filter(None, match.groups())).replace(",", ""))
            words = words.replace(match[0], " ")
    words = re.sub(r"\s+", " ", re.sub(r"[()\[\]:,|·]", " ", words)).strip()
    field = next((name for name, pattern in FIELDS if pattern.search(words)), "")
    return Head(text, field, words, unit(split), **number)


@cache
def count(text: str) -> int | None:
    """Return the number in a text such as `4`, `4 GPUs`, `2-GPU` or `8,192`, or None."""
    match = PATTERNS["count"].fullmatch(plain(text).replace("-", ""))
    number = int(match[1].replace(",", "")) if match else 0
    return number if 1 <= number <= 10**12 else None


def named(kind: str, text: str, within: bool = False) -> str:
    """Return which of `WORDS[kind]` `text` is (or contains, if `within`); "" if none or several."""
    matches, around = (re.search, r"\b(?:{})\b") if within else (re.fullmatch, "{}")
    names = [name for name, one in WORDS[kind].items() if matches(around.format(one), text)]
    return names[0] if len(names) == 1 else ""


def figure(text: str, of: Head) -> Figure | None:
    """Return the number in `text` (s, GB/s, images/s) or None. Its unit may be in header `of`."""
    if clock := PATTERNS["clock"].fullmatch(text):
        hours, minutes, seconds = clock.groups()
        value = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
        return Figure(value, 10.0 ** -len(seconds.partition(".")[2]))
    if not (match := PATTERNS["figure"].fullmatch(text)):
        return None
    mantissa, _, exponent = match[1].lower().replace(",", "").replace("−", "-").partition("e")
    factor = {"k": 1e3, "m": 1e6}.get((match[2] or "").lower(), 1.0)
    factor *= unit(match[3]) or of.factor or 1
    value = float(f"{mantissa}e{exponent or 0}") * factor
    digits = int(exponent or 0) - len(mantissa.partition(".")[2])
    usual = 1e-30 < abs(value) < 1e15 or not float(mantissa)
    return Figure(value, factor * 10.0**digits) if usual else None
