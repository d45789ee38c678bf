"""The types that keys of a configuration have."""

from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, MinLen
from pydantic import AfterValidator

from scaling.registry.registry import Registry
from scaling.registry.update_rule import Fraction as Fraction
from scaling.registry.update_rule import NotNegative as NotNegative

T = TypeVar("T")


def _each_once(values: list[T]) -> list[T]:
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)} is there more than once")
    return values


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Allow the names of a registry's entries."""

    def check(name: str) -> str:
        if name not in registry.names():
            raise ValueError(f"it should be one of {', '.join(registry.names())}")
        return name

    return AfterValidator(check)


Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]
AboveZero = Annotated[float, Gt(0)]
Distinct = Annotated[list[T], AfterValidator(_each_once)]
Some = Annotated[Distinct[T], MinLen(1)]
Precision = Literal["float32", "tf32", "bf16"]
