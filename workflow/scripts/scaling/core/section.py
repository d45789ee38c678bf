"""Sections of the configuration, and the messages about errors in them."""

from difflib import get_close_matches
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from scaling.core.errors import UserError

LONGEST_SHOWN, MOST_SAID = 60, 10


class Section(BaseModel):
    """A section of the configuration with exactly these keys and types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @classmethod
    def of(cls, values: Any, name: str = "the configuration") -> Self:
        """Return the section of `values` and defaults; UserError with one sentence per error."""
        try:
            return cls.model_validate(values)
        except ValidationError as invalid:
            sentences = [cls._sentence(error, name) for error in invalid.errors()[:MOST_SAID]]
        raise UserError(f"{name} is wrong: {'; '.join(sorted(sentences))}")

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return `values`, of which this section was made, with defaults for missing keys.

        Entries of lists are returned unchanged.
        """
        dumped, made = self.model_dump(), dict[str, Any]()
        for key in type(self).model_fields:
            own, value = getattr(self, key), values.get(key, dumped[key])
            inner = isinstance(own, Section) and isinstance(value, dict)
            made[key] = own.completed(value) if inner else value
        return made

    @classmethod
    def _sentence(cls, error: Any, name: str) -> str:
        *section, last = error["loc"] or [""]
        if error["type"] == "missing":
            return f"{key_name(section) or name} lacks {last}"
        if error["type"] in ("extra_forbidden", "invalid_key"):
            kind: Any = cls
            for key in section:
                of_list = isinstance(key, int)
                kind = kind.__args__[0] if of_list else kind.model_fields[key].annotation
            near = get_close_matches(str(last), kind.model_fields, n=1)
            meant, known = f", perhaps {near[0]}" if near else "", ", ".join(kind.model_fields)
            place = key_name(section) or name
            return f"{place} has the unknown key {last}{meant} (allowed: {known})"
        said = error["msg"].removeprefix("Value error, ").replace("Input should", "it should")
        if not error["loc"]:
            return said
        if error["type"].startswith("float") and isinstance(error["input"], str):
            said += ", with a decimal point: YAML reads 5e-4 as text, and 5.0e-4 as a number"
        shown = repr(error["input"])
        shown = shown[:LONGEST_SHOWN] + "…" if len(shown) > LONGEST_SHOWN else shown
        return f"{key_name(error['loc'])} is {shown}: {said}"


def key_name(path: Any) -> str:
    """Format the path of a key: `grid.gpus[0]`."""
    keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(keys).removeprefix(".")
