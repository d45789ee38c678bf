"""The types of configuration keys."""

from collections import Counter
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Interval, Len
from pydantic import AfterValidator

from scaling.registry.registry import Registry
from scaling.registry.update_rule import Fraction as Fraction
from scaling.registry.update_rule import NotNegative as NotNegative

T = TypeVar("T")


def _each_once(values: list[T]) -> list[T]:
    twice = sorted(text for text, times in Counter(map(str, values)).items() if times > 1)
    if twice:
        raise ValueError(f"{', '.join(twice)} is there more than once")
    return values


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Return a type that allows the names of a registry's entries."""

    def check(name: str) -> str:
        if name not in registry.names():
            raise ValueError(f"it should be one of {', '.join(registry.names())}")
        return name

    return AfterValidator(check)


Count = Annotated[int, Interval(ge=0, lt=2**32)]
Positive = Annotated[int, Interval(ge=1, lt=2**40)]
Few = Annotated[int, Interval(ge=1, le=2**16)]
AboveZero = Annotated[float, Interval(gt=0, le=1e9)]
Distinct = Annotated[list[T], Len(0, 1000), AfterValidator(_each_once)]
Some = Annotated[Distinct[T], Len(1)]
Precision = Literal["float32", "tf32", "bf16"]
