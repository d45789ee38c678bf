"""Parse headers and fields of tables: quantities, units, and printed numbers with their digits."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scaling.config.stored import read_config

WORDS = read_config(Path(__file__).with_name("words.yaml"))
GPU, ITEM = WORDS["GPU"], WORDS["ITEM"]
FIELDS = [
    (name, re.compile(pattern.replace("{GPU}", GPU).replace("{ITEM}", ITEM)))
    for name, pattern in WORDS["fields"]
]
IDENTITY = {"gpus", "batch_size", "global_batch", "strategy", "model", "parameters", "hardware"}
IDENTITY |= {"status", "study", "recipe", "run", "count", "nodes"}
"""Fields that name a configuration; all others are values of it."""
TIMES = {"epoch", "training", "loading", "compute", "communication"}
OF_BATCH = re.compile(
    rf"(?:batch(?:[ -]?size)?|\bbs|\bb)(?: ?(?:per|/) ?{GPU})?(?: of)? ?[=:]? ?(\d[\d,]*)\b"
    rf"(?! ?{GPU})(?: ?(?:per|/) ?{GPU})?|(\d+) ?(?:{ITEM})? ?(?:per|/) ?{GPU}"
)
OF_GPUS = re.compile(rf"(\d+) ?[x×]? ?{GPU}\b|\b{GPU} ?[=:]? ?(\d+)\b|\bn ?= ?(\d+)")
REFERENCE = re.compile(rf"(?:vs\.?|versus|over|to|against|relative to) (?:1|one|single) ?{GPU}")
COUNT = re.compile(
    rf"(?i)(?:n ?= ?)?(\d+|\d{{1,3}}(?:,\d{{3}})+)(?:\.0+)? ?[x×]? ?-?"
    rf"(?:{GPU}|[avhptl]\d+\w*|rtx.*)?"
)
NUMBER = r"[-+−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,3})?"
UNIT = r"(?:x|×|%|s|secs?|seconds?|ms|min(?:ute)?s?|h|[kKmMgGtT]?i?[bB](?:it)?(?:ps|/s)"
UNIT += r"|\w{0,7}/s(?:ec)?)"
FIGURE = re.compile(
    rf"[~≈<>]? ?({NUMBER}) ?([kKM]?)(?![a-zA-Z]{{2}}) ?({UNIT}(?:/epoch)?)?"
    rf"(?: ?(?:±|\+/?-|\\pm) ?{NUMBER} ?{UNIT}?)?(?: ?(?:\(.*\)|\[.*\]))*[*†‡§¹²³]*"
)
MINIMUM = re.compile(r"(?i)\bmin_|(?<!_in)_min(?=_|\b)")
"""What is no unit: `min_time`, `speedup_min`; `time_min` may be minutes, `time_in_min` is."""
SPLIT = re.compile(r"_|(?<=[a-z])(?=[A-Z][A-Za-z])")
CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)")
SPELLED = re.compile(r"(?:(\d+) ?h(?:ours?)?)? ?(?:(\d+) ?m(?:in)?)? ?(\d+(?:\.\d*)?) ?s(?:ec)?")


class Figure(NamedTuple):
    """A printed number after conversion of its unit, and the size of one unit in its last digit."""

    value: float
    unit: float


class Head(NamedTuple):
    """The meaning of a header; `words` are its text in lower case without GPUs and batch size."""

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
    """Return the factor of the first unit that occurs in a text; None if none occurs."""
    return next((factor for factor, one in WORDS["units"] if re.search(one, text)), None)


@cache
def head(text: str) -> Head:
    """Return the meaning of a header: quantity, unit, and number of GPUs or batch size if any."""
    text = plain(text)
    words = SPLIT.sub(" ", text).lower()
    words = REFERENCE.sub("", words.replace("printed ", "").replace("-", " "))
    number = dict.fromkeys(("batch", "gpus"))
    for name, pattern in (("batch", OF_BATCH), ("gpus", OF_GPUS)):
        if match := pattern.search(words):
            number[name] = int(next(filter(None, match.groups())).replace(",", ""))
            words = words.replace(match[0], " ")
    words = re.sub(r"\s+", " ", re.sub(r"[()\[\]:,|·]", " ", words)).strip()
    field = next((name for name, pattern in FIELDS if pattern.search(words)), "")
    factor = unit(SPLIT.sub(" ", MINIMUM.sub("", text)))
    return Head(text, field, words, factor, number["gpus"], number["batch"])


def unclear(one: Head) -> bool:
    """Return whether a header of a time has `_min` but no unit: minutes or a minimum."""
    if one.field not in TIMES or one.factor or re.search(r"\bs(?:ec|\b)", one.words):
        return False
    return bool(re.search(r"(?i)\w_min(?=_|\b)", one.text))


@cache
def count(text: str) -> int | None:
    """Return the number in a text such as `4`, `4 GPUs`, `2-GPU` or `8,192`; else None."""
    match = COUNT.fullmatch(plain(text).replace("-", ""))
    number = int(match[1].replace(",", "")) if match else 0
    return number if 1 <= number <= 10**12 else None


def named(kind: str, text: str) -> str:
    """Return the strategy or status of which a text has the words; "" for none or several."""
    find = re.search if kind == "strategies" else re.fullmatch
    names = [name for name, pattern in WORDS[kind].items() if find(pattern, text.lower())]
    return names[0] if len(names) == 1 else ""


def figure(text: str, of: Head) -> Figure | None:
    """Return the number in a field, in s, GB/s, images/s or percent; None if it is not a number."""
    if clock := CLOCK.fullmatch(text) or SPELLED.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        if minutes or hours:
            value = 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(seconds)
            return Figure(value, 10.0 ** -len(seconds.partition(".")[2]))
    if not (match := FIGURE.fullmatch(text)):
        return None
    mantissa, _, exponent = match[1].lower().replace(",", "").replace("−", "-").partition("e")
    factor = {"k": 1e3, "m": 1e6, "": 1.0}[match[2].lower()]
    factor *= unit(match[3] or "") or of.factor or 1.0
    digits = int(exponent or 0) - len(mantissa.partition(".")[2])
    value = float(f"{mantissa}e{exponent or 0}") * factor
    usual = 1e-30 < abs(value) < 1e15 or not float(mantissa)
    return Figure(value, factor * 10.0**digits) if usual else None
