"""Format numbers and names of configurations as text."""

import math
from collections.abc import Hashable, Iterable

import pandas as pd


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits: `0.345`, `1,234`, `1.66e10`; NaN as `–`."""
    if pd.isna(value):
        return "–"
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    # The exponent after rounding: 0.00999… is 0.0100, not 0.01000.
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    if abs(value) >= 1e6:
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    decimals = max(0, digits - 1 - int(exponent))
    return f"{value:,.{decimals}f}".replace("-", "−")


def distinguishable(found: float, expected: float) -> tuple[str, str]:
    """Return two numbers as text, with enough digits (3 to 7) to show their difference."""
    if all(pd.isna(value) or value == round(value) for value in (found, expected)):
        return whole_span([found]), whole_span([expected])
    difference, digits = abs(found - expected), 3
    if difference > 0:
        apart = _exponent(max(abs(found), abs(expected))) - _exponent(difference)
        digits = min(7, max(3, 2 + apart))
    return significant(found, digits), significant(expected, digits)


def seconds(value: float) -> str:
    """Return a number of seconds as text: `0.345 s`."""
    return f"{significant(value)} s"


def span(low: float, high: float, digits: int = 3) -> str:
    """Return a range as text: `0.341–0.352`."""
    return f"{significant(low, digits)}–{significant(high, digits)}"


def times(value: float) -> str:
    """Return a ratio as text: `1.87×`; NaN is an en dash."""
    return "–" if math.isnan(value) else f"{significant(value)}×"


def judged(ratio: float, low: float, high: float, scope: str) -> str:
    """Return a ratio, its interval and `scope` as text: `1.87× [1.86, 1.88], 3 machines`."""
    ends = "" if math.isnan(low) else f" [{significant(low)}, {significant(high)}]"
    return ", ".join(filter(None, [times(ratio) + ends, scope]))


def percent(share: float) -> str:
    """Return a fraction (1 is 100 %) as percent: `86 %`, `0.4 %`."""
    value = 100 * share
    decimals = 0 if value == 0 or abs(value) >= 10 else 1
    return f"{value:.{decimals}f} %".replace("-", "−")


def points(value: float) -> str:
    """Return a difference in percentage points, with its sign: `+0.20`, `−1.35`."""
    return f"{value:+z.2f}".replace("-", "−")


def data(count: float) -> str:
    """Return a number of bytes in decimal units: `44.7 MB`, `6.57 GB`; NaN is an en dash."""
    if pd.isna(count):
        return "–"
    return rate(count, "B") if count >= 1e3 else f"{count:,.0f} B"


def rate(value: float, unit: str) -> str:
    """Return `value` in `unit` with an SI prefix: `797 TFLOP/s`, `4.27 TB/s`."""
    sizes = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
    prefix, size = next((pair for pair in sizes if value >= pair[1]), sizes[-1])
    return f"{significant(value / size)} {prefix}{unit}"


def whole_span(values: Iterable[float], between: str = " to ") -> str:
    """Return the range of integers as text: `3`, `1 to 9`; an en dash if all are NaN."""
    known = [int(value) for value in values if not pd.isna(value)]
    ends = dict.fromkeys(f"{end:,}" for end in (min(known), max(known))) if known else ["–"]
    return between.join(ends)


def gpus(count: float) -> str:
    """Return a number of GPUs as text: `1 GPU`, `4 GPUs`."""
    return "1 GPU" if count == 1 else f"{int(count)} GPUs"


def _exponent(value: float) -> int:
    """Return the exponent (base 10) of `value` after rounding to 2 digits."""
    return int(f"{value:.1e}".partition("e")[2])


def plural(count: float, noun: str) -> str:
    """Return a count with its noun in singular or plural: `1 cell`, `3 cells`."""
    return f"{count:,.0f} {noun}" if count == 1 else f"{count:,.0f} {noun}s"


WORDS = {
    "infeasible": "cannot run",
    "oom": "out of memory",
    "oom_host": "out of host memory",
    "timeout": "out of time",
}
"""Words that pages show for some internal names. In other names, "_" becomes a space."""


def words(name: Hashable) -> str:
    """Return the words that pages show for an internal name, such as a status."""
    return WORDS.get(str(name), str(name).replace("_", " "))
