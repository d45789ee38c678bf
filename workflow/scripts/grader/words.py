"""Parse headers and fields of tables: quantities, units, and printed numbers with their digits."""

import re
from typing import NamedTuple

GPU = r"(?:gpus?|devices?|cards?|ranks?|world ?size|n ?procs?|processes)"
ITEM = r"(?:im(?:age|g)s?|samples?|examples?|tok(?:en)?s?|items?)"
STEP = r"(?:it|iter|iterations?|steps?|batch(?:es)?)"
FIELDS = [
    (
        "",
        r"\b(?:std|stdev|deviation|variance|err|error|loss|acc\w*|lr|low|high|weak|runs|machines|gap|"
        r"scope|fixed|alone|message|note|date|framework|epochs|max memory|exposed|busy)\b|idle|"
        r"spread|commit|load.* m[ia][nx]|\bpeak\b.* [mg]i?b$|[ei]s?/ep$|(?:out|by the) exch",
    ),
    ("communication", r"messages seconds$"),
    ("bytes", r"bytes per (?:iteration|step)"),
    ("iterations", r"^(?:iterations|steps)$"),
    ("least", r"^epoch seconds min$|fastest"),
    ("most", r"^epoch seconds max$|slowest"),
    ("count", r"^count$"),
    ("utilization", r"\butil"),
    ("peak", r"\bpeak gb per s$"),
    ("bandwidth", r"bandwidth|\bbw\b|\b[kmgt](?:i?b|bits?)(?: ?/ ?| per )s|[kmgt]bps"),
    ("efficiency", r"\beff(?!ective)"),
    ("speedup", r"speed ?up|\bspeed\b|\bsu\b"),
    ("rate", rf"throughput|\b{ITEM} ?(?:per|/) ?s(?:ec(?:ond)?)?\b"),
    ("", r"\bper second\b"),
    (
        "training",
        r"\b(?:w/?o|without|excl\w*|no|in memory)\b.*(?:load|data|wait|memory|i/?o\b|epoch)",
    ),
    ("training", r"\btrain(?:ing)? (?:time|sec|s$)"),
    ("epoch", r"\b(?:incl\w*|with|w/)\b.*(?:load|data|i/?o)"),
    ("loading", r"\bload|data wait|wait\w* for data|\bi/?o\b"),
    ("", rf"(?:per|/) ?{STEP}\b|\b{STEP} (?:time|ms|sec)|\b{STEP} ?/ ?s"),
    ("communication", r"\bcomm|all ?reduce|exchange"),
    ("compute", r"\bcomp(?:ut|\b)"),
    ("hardware", rf"hardware|{GPU} (?:type|name|model)|accelerator"),
    ("nodes", rf"\bnodes?\b(?!.*gpu)|{GPU}.*per node"),
    ("global_batch", r"\b(?:global|total|effective)\b.*(?:batch|\bbs\b)"),
    ("batch_size", r"batch|\bbs\b|^b$"),
    ("run", r"^(?:run|repeat|trial|seed|repetition|epoch)(?: (?:id|no|number|#))?$"),
    (
        "epoch",
        r"time|second|\b(?:secs?|ms|mins?|minutes|hours?|h|s|t|total|epoch|wall)\b|dur|elaps",
    ),
    ("gpus", rf"\b{GPU}\b|^#?n$"),
    ("parameters", r"\bparam"),
    ("model", r"\bmodel|network|architect"),
    ("strategy", r"strateg|method|parallel|\bmode\b|\bddp\b"),
    ("status", r"status|outcome"),
    ("study", r"\bstudy|student|\bteam\b"),
    ("recipe", r"recipe|configuration|kernel|variant|setup"),
]
"""Quantities and the patterns of their headers, tried in order; columns of "" are not read."""
IDENTITY = {"gpus", "batch_size", "global_batch", "strategy", "model", "parameters", "hardware"}
IDENTITY |= {"status", "study", "recipe", "run", "count", "nodes"}
UNITS = [
    (0.001, r"\bms\b|msec|milli|\b[mM]B(?:/|ps| per)"),
    (60.0, r"\bmin(?:s|utes?)?\b"),
    (3600.0, r"\b(?:h|hrs?|hours?)\b"),
    (0.125, r"[gG]bits?\b|Gb(?:/|ps)"),
    (1.073741824, r"\bGiB"),
    (0.001048576, r"\bMiB"),
    (1000.0, r"\bTB(?:/|ps)|\b[kK] ?(?:im|samp|tok|/s)"),
    (1e6, r"\bM ?(?:im|samp|tok|/s)"),
    (1.0, r"^(?:s|secs?|GB/s)$"),
]
"""Factors that convert to seconds, GB/s or images per second, with the patterns of the units."""
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
MISSING = {*"-–—−/✗x", "", "n/a", "na", "nan", "none", "null", "missing"}
OUT = re.compile(r"(?i).*(?:\bo\.?o\.?m\b\.?|out[ -]of[ -](?:\w+ )?memory).*")
STATUSES = {name: name for name in ("ok", "oom", "oom_host", "infeasible", "diverged", "timeout")}
STATUSES |= {"cannot run": "infeasible", "out of time": "timeout"}
STRATEGIES = {
    "ddp": r"\bddp\b|distributed ?data ?parallel",
    "dp": r"\bdp\b|(?<!distributed)(?<!distributed )\bdata ?parallel(?!ism)",
    "fsdp": r"\bfsdp|fully sharded",
}
NUMBER = r"[-+−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?"
UNIT = r"(?:x|×|%|s|secs?|seconds?|ms|min(?:ute)?s?|h|[kKmMgGtT]?i?[bB](?:it)?(?:ps|/s)"
UNIT += r"|\w{0,7}/s(?:ec)?)"
FIGURE = re.compile(
    rf"[~≈<>]? ?({NUMBER}) ?([kKM]?)(?![a-zA-Z]{{2}}) ?({UNIT}(?:/epoch)?)?"
    rf"(?: ?(?:±|\+/?-|\\pm) ?{NUMBER} ?{UNIT}?)?(?: ?(?:\(.*\)|\[.*\]))*[*†‡§¹²³]*"
)
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


def plain(text: str) -> str:
    """Return a text without Markdown's emphasis, HTML tags and repeated spaces."""
    text = re.sub(r"\*\*|__|`|\\(?=[*_|])|<[^>]*>|\$", "", text.replace("\u00a0", " "))
    return re.sub(r"\s+", " ", text).strip(" *")


def unit(text: str) -> float | None:
    """Return the factor of the first of `UNITS` that occurs in a text; None if none occurs."""
    return next((factor for factor, pattern in UNITS if re.search(pattern, text)), None)


def head(text: str) -> Head:
    """Return the meaning of a header: quantity, unit, and number of GPUs or batch size if any."""
    text = plain(text)
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", text.replace("_", " ")).lower()
    words = REFERENCE.sub("", words.replace("printed ", "").replace("-", " "))
    number = dict.fromkeys(("batch", "gpus"))
    for name, pattern in (("batch", OF_BATCH), ("gpus", OF_GPUS)):
        if match := pattern.search(words):
            number[name] = int(next(filter(None, match.groups())).replace(",", ""))
            words = words.replace(match[0], " ")
    words = re.sub(r"\s+", " ", re.sub(r"[()\[\]:,|·]", " ", words)).strip()
    field = next((name for name, pattern in FIELDS if re.search(pattern, words)), "")
    if field == "epoch" and re.fullmatch(r"min|time min", words) and "(" not in text:
        field = "?"
    if field in ("compute", "communication") and re.search("%|share|percent|overhead", text):
        field = ""
    return Head(text, field, words, unit(text), number["gpus"], number["batch"])


def count(text: str) -> int | None:
    """Return the number in a text such as `4`, `4 GPUs`, `2-GPU` or `8,192`; else None."""
    match = COUNT.fullmatch(plain(text).replace("-", ""))
    number = int(match[1].replace(",", "")) if match else 0
    return number if 1 <= number <= 10**12 else None


def strategy(text: str) -> str:
    """Return the strategy that a text names, a key of `STRATEGIES`; "" for none or for several."""
    names = [name for name, pattern in STRATEGIES.items() if re.search(pattern, text.lower())]
    return names[0] if len(names) == 1 else ""


def figure(text: str, of: Head, comma: bool = False) -> Figure | None:
    """Return the number in a field, in s, GB/s, images/s or percent; None if it is not a number."""
    text = plain(text)
    if comma:
        text = text.replace(".", "").replace(",", ".")
    if clock := CLOCK.fullmatch(text) or SPELLED.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        if minutes or hours:
            value = 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(seconds)
            return Figure(value, 10.0 ** -len(seconds.partition(".")[2]))
    if not (match := FIGURE.fullmatch(text)):
        return None
    mantissa, _, exponent = match[1].lower().replace(",", "").replace("−", "-").partition("e")
    if len(exponent) > 4:
        return None
    factor = {"k": 1e3, "m": 1e6, "": 1.0}[match[2].lower()]
    factor *= unit(match[3] or "") or of.factor or 1.0
    digits = int(exponent or 0) - len(mantissa.partition(".")[2])
    value = float(f"{mantissa}e{exponent or 0}") * factor
    if (value or float(mantissa)) and not 1e-30 < abs(value) < 1e15:
        return None
    return Figure(value, factor * 10.0**digits)
