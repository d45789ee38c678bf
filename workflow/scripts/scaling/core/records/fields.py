"""Types of record fields, and the fields that all records have."""

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Gt, Interval, Len
from pydantic import AwareDatetime, ConfigDict, GetCoreSchemaHandler, with_config
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

_SHARED = ConfigDict(strict=True, allow_inf_nan=False)
closed = with_config(ConfigDict(extra="forbid", **_SHARED))
"""Decorator: a schema that rejects unknown keys, as do its parts and subclasses."""
opened = with_config(ConfigDict(extra="allow", **_SHARED))
"""Decorator: a schema that allows unknown keys."""

Row = dict[str, Any]
Options = Row


class As:
    """Field metadata: validate a dict as another type in pydantic."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self._schema)


Whole = Annotated[int, Interval(ge=0, lt=2**63)]
Positive = Annotated[int, Interval(ge=1, lt=2**63)]
Amount = Annotated[float, Ge(0)]
Seconds = Annotated[float, Gt(0)]
Repeats = Annotated[list[Seconds], Len(1)]
"""Seconds of each repeat."""
Fraction = Annotated[float, Interval(ge=0, le=1)]
Percent = Annotated[float, Interval(ge=0, le=100)]
Pair = Annotated[list[float], Len(2, 2)]
"""The minimum and the maximum."""


def of_images(accuracy: float | None, images: int) -> bool:
    """Return whether an accuracy is that of a whole number of so many images."""
    right = (accuracy or 0) * images
    return abs(right - round(right)) <= 1e-6 * images


Status = Literal["ok", "oom", "oom_host", "infeasible", "diverged", "timeout"]
Role = Literal["warmup", "measured", "instrumented"]


@opened
class Environment(TypedDict):
    """Where something was measured, as `core.environment` describes it."""

    hosts: NotRequired[list[str]]
    device: NotRequired[str]
    device_names: NotRequired[list[str]]
    device_ids: NotRequired[list[str]]
    slurm_gpus: NotRequired[list[str]]
    cpu: NotRequired[str]
    cpu_count: NotRequired[Whole]
    topology: NotRequired[str | None]
    commit: NotRequired[str | None]
    started: NotRequired[AwareDatetime | None]
    ended: NotRequired[AwareDatetime | None]


@closed
class Record(TypedDict):
    """The fields of every measurement record. Its schemas reject unknown keys, too."""

    environment: Annotated[Row, As(Environment)]
