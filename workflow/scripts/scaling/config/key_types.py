"""The types that keys of a configuration have."""

from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from scaling.registry.registry import Registry

T = TypeVar("T")


def _each_once(values: list[T]) -> list[T]:
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise PydanticCustomError(
            "repeated",
            "has {twice} more than once (allowed: each value once)",
            {"twice": ", ".join(twice)},
        )
    return values


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Allow the names of a registry's entries."""

    def check(name: str) -> str:
        names = registry.names()
        if name not in names:
            shown = {"name": name, "names": ", ".join(names)}
            raise PydanticCustomError("unregistered", "is '{name}' (allowed: {names})", shown)
        return name

    return AfterValidator(check)


Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
AboveZero = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Ge(0), Lt(1)]
Distinct = Annotated[list[T], AfterValidator(_each_once)]
Some = Annotated[Distinct[T], MinLen(1)]
Precision = Literal["float32", "tf32", "bf16"]


class Section(BaseModel):
    """A section: it has exactly these keys, of exactly these types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
