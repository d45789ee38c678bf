"""What the words of a table mean: labels of its rows and columns, and figures with their units."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from grader.rows import Timing

GPU = r"(?:\w*gpus?|devices?|cards?|ranks?|world size|n?procs?|processes)"
IMAGE, STEP = (
    r"(?:im(?:age|g)s?|samples?|examples?)",
    r"(?:it|iter|iterations?|steps?|batch(?:es)?)",
)
FIELDS = {
    "printed_utilization_percent": r"\butil",
    "throughput": rf"throughput|\b(?:{IMAGE}|{STEP}) ?(?:per|/) ?s(?:ec(?:ond)?)?\b",
    "printed_bandwidth_gb_per_s": r"bandwidth|\bbw\b|\b[kmgt](?:i?b|bit)(?:/| per )s|[kmgt]bps",
    "printed_speedup": r"speed ?up|\bspeed\b",
    "printed_compute_seconds": r"\bcomp(?:ut|\b)",
    "printed_communication_seconds": r"\bcomm|all ?reduce|exchange",
    "epoch_seconds_without_loading": r"\b(?:w/?o|without|excl\w*|no|minus)\b.*(?:load|data|i/?o)",
    "epoch_seconds": r"\b(?:incl\w*|with|w/)\b.*load",
    "": r"\bstd|deviat|varian|error|loss|\bacc|\blr\b|memory|worker|effic|load|per node|epochs$",
    "?minutes or the minimum": r"(?:time|epoch) min$|^min$",
    "epoch_seconds_max": r"\bmax(?:imum)? |slowest|(?:time|epoch).* max\b",
    "epoch_seconds_min": r"^min(?:imum)? |fastest|(?:time|epoch) s\w* min\b",
    "time": r"time|second|\b(?:secs?|m?s|t|min|minutes|hours|h|total)\b|duration|elapsed|zeit",
    "batch_size": rf"batch|\bbs\b|^b$|^{IMAGE}$",
    "gpus": rf"\b{GPU}\b|^[np]$",
    "parameters": r"\bparam",
    "model": r"\bmodel|network|architect",
    "strategy": r"strateg|method|parallel|\bmode\b",
    "status": r"status|\bstate\b|outcome",
    "study": r"\bstudy|experiment|\bgroup\b|\bteam\b|author|student",
    "count": r"^(?:n )?(?:count|runs|repeats)$",
}
"""What a label is called by, the first that is found; "" for what is passed over."""
VALUES = {
    "batch_size": rf"(?:batch(?: ?size)?|\bbs|\bb)(?: ?(?:per|/) ?{GPU})?(?: of)? ?[=:]? ?(\d+)"
    rf"|(\d+) ?(?:{IMAGE})? ?(?:per|/) ?{GPU}|(\d+) batch",
    "gpus": rf"(\d+) ?[x×]? ?{GPU}\b|\b{GPU} ?[=:]? ?(\d+)|\bn ?[=:]? ?(\d+)"
    r"|^(\d+) ?[x×]? ?(?:[avhptl]\d|rtx|gtx|tesla|nvidia)",
}
"""What a label fixes, as `Batch size 32 per GPU` does."""
STRATEGIES = {
    "ddp": r"\bddp\b|distributed ?data ?parallel|distributed",
    "dp": r"\bdp\b|data ?parallel",
}
UNITS = {
    **{"60": r"[(\[/ ]min\w*[)\]]|\bin min|minutes|mins\b", "0.001": r"\bms\w*\b|milli"},
    **{
        "0.000001": r"\b[uµ]s\b|micro",
        "3600": r"\b(?:h|hrs?|hours?)\b",
        "0.125": "[gG]bit|Gb(?:/|ps)",
    },
    **{"0.000125": "[mM]bit|Mb(?:/|ps)", "1.073741824": "gib", "0.001": r"\bms\w*\b|milli|mb"},
    **{"1000": r"\btb", "1": r"\bs(?:ecs?)?\b|second|gb"},
}
"""What a unit is worth, in seconds or GB/s."""
MISSING = {"-", "–", "—", "--", "---", "n/a", "na", "nan", "none", "null", "/", "?", "#n/a"}
OOM = re.compile(r"(?i)(?:cuda |gpu )?(?:oom|out.of.memory)(?: error)?")
NUMBER = re.compile(
    r"[~≈ ]*([-+−]?\d[\d.,' \u00a0\u202f]*(?:[eE][-+]?\d+)?) ?(?:±.*|\(.*\))? ?([%x×]|[a-zA-Zµ/]*)"
)


class Label(NamedTuple):
    """What a label says: a `field` of `Timing` or `FIELDS`, and the `values` that it fixes.

    A number counts `factor` seconds or GB/s, None where no unit is named, of one step if
    `per_step`, of each GPU if `per_gpu`. A batch, or a time, may be the `whole`.
    """

    text: str
    field: str
    values: Mapping[str, str] = MappingProxyType({})
    factor: Decimal | None = None
    per_step: bool = False
    per_gpu: bool = False
    whole: bool = False


@cache
def label(text: str) -> Label:
    """What the label `text` says."""
    if text.strip().lower() in Timing.model_fields:
        return Label(text, text.strip().lower(), {}, Decimal(1))
    raw = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=\w)\(s\)|[\s_#*`$-]+", " ", text).strip()
    plain, values = raw.lower(), dict[str, str]()
    per_gpu = bool(re.search(rf"(?:per|/|each) ?{GPU}|\blocal\b", plain))
    if cell := re.fullmatch(r"(\d+) ?[x×] ?(\d+)", plain):
        return Label(text, "", dict(zip(VALUES, reversed(cell.groups()), strict=True)))
    for field, pattern in VALUES.items():
        if found := re.search(pattern, plain):
            values[field] = next(filter(None, found.groups()))
            plain = plain.replace(found[0], " ", 1)
    if strategy := next((x for x, p in STRATEGIES.items() if re.search(p, plain)), None):
        values["strategy"] = strategy
        plain = re.sub(STRATEGIES[strategy], " ", plain)
    plain = re.sub(rf"(?:per|/) ?{GPU}", " ", plain).strip()
    return Label(
        text,
        next((field for field, pattern in FIELDS.items() if re.search(pattern, plain)), ""),
        values,
        next(
            (Decimal(x) for x, p in UNITS.items() if re.search(p, raw) or re.search(p, plain)), None
        ),
        per_step=bool(
            re.search(rf"(?:per|/) ?{STEP}\b|\b{STEP} (?:time|ms)|\b{STEP} ?/ ?s", plain)
        ),
        per_gpu=per_gpu,
        whole=bool(re.search(r"global|total|effective|overall|full|wall", plain)),
    )


def number(text: str, comma: bool) -> tuple[str, Decimal | None] | None:
    """The digits in a cell and what its unit is worth, with `comma` for a decimal comma.

    None for what is no number.
    """
    found = NUMBER.fullmatch(text.strip("* `$"))
    if not found or (found[2].isalpha() and found[2] != "x" and not label(f"({found[2]})").field):
        return None
    digits = re.sub(r"[ '\u00a0\u202f]", "", found[1]).replace("−", "-")
    if comma:
        digits = digits.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", digits):
        digits = digits.replace(",", "")
    return (digits, label(f"({found[2]})").factor) if "," not in digits else None


def decimal_comma(cells: list[str]) -> bool | None:
    """Whether numbers of these cells have a decimal comma; None where that cannot be told."""
    figures = [found[1] for cell in cells if (found := NUMBER.fullmatch(cell.strip("* `$")))]
    commas = [one for one in figures if "," in one]
    points = [one for one in figures if re.search(r"\.\d", one) and "," not in one]
    if not commas or any(not re.fullmatch(r"-?[1-9]\d{0,2}\.\d{3}", one) for one in points):
        return False
    if any(not re.fullmatch(r"[-+−]?[1-9]\d{0,2}(?:,\d{3})+", one) for one in commas):
        return not any(re.search(r",\d{3}\.|,\d+,", one) for one in commas)
    return None
