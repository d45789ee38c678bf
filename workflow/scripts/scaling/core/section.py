"""Sections of the configuration, types of their keys, and sentences about errors in them."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, TypeVar

from annotated_types import Ge, Interval, Len, Lt
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_serializer

from scaling.core.errors import UserError

LONGEST_SHOWN, MOST_SAID = 60, 10
EXPECTED = {
    "string": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "keys with values",
    "model": "keys with values",
}
"""Maps the first part of a pydantic error type to words for the type of value that is required."""
UNKNOWN = ("extra_forbidden", "invalid_key")
"""Pydantic's error types for an unknown key: the first if the key is text, else the second."""
T = TypeVar("T")


def _each_once(values: list[T]) -> list[T]:
    names = Counter(str(getattr(value, "name", value)) for value in values)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise ValueError(f"duplicate value {', '.join(twice)}")
    return values


NotNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Ge(0), Lt(1)]
AboveZero = Annotated[float, Interval(gt=0, le=1e9)]
Count = Annotated[int, Interval(ge=0, lt=2**32)]
Positive = Annotated[int, Interval(ge=1, lt=2**40)]
Few = Annotated[int, Interval(ge=1, le=2**16)]
Distinct = Annotated[list[T], Len(0, 1000), AfterValidator(_each_once)]
Some = Annotated[Distinct[T], Len(1)]
Precision = Literal["float32", "tf32", "bf16"]


class Section(BaseModel):
    """A section of the configuration. Unknown keys and wrong types are errors."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def of(cls, values: Any, name: str = "the configuration") -> Self:
        """Return a section with `values` and defaults; UserError about `name` for wrong values."""
        refuse(cls.sentences(values, name), name)
        return cls.model_validate(values)

    @classmethod
    def sentences(
        cls, values: Any, name: str = "the configuration", above: tuple[str, ...] = ()
    ) -> list[str]:
        """Return a sentence for each error in `values`. `name` and `above` are as in `sentence`."""
        try:
            cls.model_validate(values)
            return []
        except ValidationError as invalid:
            errors = invalid.errors()[:MOST_SAID]
            return sorted(sentence(error, name, above) + cls._allowed(error) for error in errors)

    @classmethod
    def _allowed(cls, error: Any) -> str:
        """Return a hint with the allowed keys if `error` is about an unknown key, else ""."""
        if error["type"] not in UNKNOWN:
            return ""
        kind: Any = cls
        for key in error["loc"][:-1]:
            of_list = isinstance(key, int)
            kind = kind.__args__[0] if of_list else kind.model_fields[key].annotation
        near = get_close_matches(str(error["loc"][-1]), kind.model_fields)
        similar = f", perhaps {near[0]}" if near else ""
        return f"{similar} (allowed: {', '.join(kind.model_fields)})"


class Entry(Section):
    """A section in a list. `model_dump` returns only the keys that were given."""

    @model_serializer(mode="wrap")
    def _given(self, dumped: Any) -> dict[str, Any]:
        return {key: value for key, value in dumped(self).items() if key in self.model_fields_set}


def refuse(sentences: Iterable[str], name: str = "the configuration") -> None:
    """Raise UserError about `name` with all `sentences`, one per line; do nothing without any."""
    if messages := [textwrap.shorten(one, 1000) for one in dict.fromkeys(sentences)]:
        between = " " if len(messages) == 1 else "\n  "
        raise UserError(between.join([f"invalid {name.removeprefix('the ')}:", *messages]))


def sentence(error: Any, name: str = "it", above: tuple[str, ...] = ()) -> str:
    """Return pydantic's `error` as a sentence: `grid.gpus[0] is 'x': it should be a whole number`.

    `above` has the keys that lead to the checked section. `name` replaces an empty path of keys.
    """
    *section, last = error["loc"] or [""]
    place = key_name([*above, *section]) or name
    if error["type"] == "missing":
        return f"{place} lacks {last}"
    if error["type"] in UNKNOWN:
        return f"{place} has the unknown key {last}"
    kind, _, how = error["type"].partition("_")
    text = re.sub("Value error, | after validation.*", "", error["msg"])
    text = re.sub("^(Input|String|List|Value|Dictionary) should", "it should", text)
    if kind in EXPECTED and how in ("type", "parsing", "from_float", "unicode"):
        text = f"it should be {EXPECTED[kind]}"
        scalar = isinstance(item := error["input"], str | int | float)
        if kind == "list" and scalar and re.fullmatch(r"[\d.]+|\D.*", str(item)):  # 1-4 is no item.
            text += f", as [{item}]"
    elif how == "pattern_mismatch":
        text = f"it should be of the form {error['ctx']['pattern'].strip('^$')}"
    elif error["type"] == "too_short":
        text += ", or leave the key out for its default"
    if not error["loc"]:
        return text
    if last == "[key]":
        return f"{key_name([*above, *section[:-1]])} has the key {section[-1]!r}: {text}"
    if kind == "float" and re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", str(error["input"])):
        text += ", with a decimal point: YAML reads 5e-4 as text, and 5.0e-4 as a number"
    shown = repr(error["input"])
    shown = shown[:LONGEST_SHOWN] + "…" if len(shown) > LONGEST_SHOWN else shown
    return f"{key_name([*above, *error['loc']])} is {shown}: {text}"


def key_name(path: Any) -> str:
    """Return a path of keys as text: `grid.gpus[0]`."""
    keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(keys).removeprefix(".")
