"""The options of one quantized variant of a network, checked."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from scaling.core.errors import UserError

Bits = Annotated[int, Field(ge=2, le=8)]
Mistake = Literal[
    "activation_scale",
    "bias_scale",
    "255_for_127",
    "bias_unscaled",
    "no_product",
    "one_image",
    "test_data",
]
MISTAKES: dict[Mistake, str] = {
    "activation_scale": "the output factor is 127 · max / S instead of 127 / (max · S)",
    "bias_scale": "a bias is rounded at scale (2³¹ − 1) / S instead of S",
    "255_for_127": "the output factor has 255 in the place of 127, where int8 clips",
    "bias_unscaled": "a bias is added to the accumulator without its scale S",
    "no_product": "S is weight scale times image scale, without the layers between them",
    "one_image": "the activations are calibrated on one image",
    "test_data": "the activations are calibrated on the test images",
}
"""Each mistake in a few words."""
STAGES = ("float32", "weights", "weights+activations", "weights+activations+bias")
"""The lab's stages in order: the float network, and three variants of it."""


class Scheme(BaseModel):
    """The options of one quantized copy of a float network.

    `weight_bits` and `activation_bits` from 2 to 8. Without `activation_bits` (None) only weights
    are quantized, and activations, biases and logits stay floats. `bias` is rounded to int32 or a
    float in the accumulator's scale. `logits` are int8 whatever `activation_bits`, or the last
    accumulator divided by its scale. `unsigned` gives activations after ReLU 0 to 2^bits - 1.
    `weight_scales` are one for each tensor or for each output channel; `weight_range` and
    `activation_range` choose the clipping threshold: `max_abs`, or less (see
    `quantization.calibration`), for weights also the one that gives each layer the least `output`
    error (see `quantization.rounding`). `rounding` of the weights is to the nearest level or
    GPTQ's, which also makes up for the error of the layer's inputs; `bias_correction` takes the
    mean shift of each layer's output out of its bias (see `quantization.gptq`). A `mistake` is one
    of those that documents have made (see `quantization.integers`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    weight_bits: Bits = 8
    activation_bits: Bits | None = 8
    bias: Literal["int32", "float"] = "int32"
    logits: Literal["int8", "float"] = "int8"
    unsigned: bool = False
    weight_scales: Literal["tensor", "channel"] = "tensor"
    weight_range: Literal["max_abs", "mse", "output"] = "max_abs"
    activation_range: Literal["max_abs", "percentile", "mse"] = "max_abs"
    rounding: Literal["nearest", "gptq"] = "nearest"
    bias_correction: bool = False
    mistake: Mistake | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.unsigned and self.activation_bits in (None, 8):
            raise ValueError(
                "unsigned activations of 8 bits do not fit int8: give activation_bits of 2 to 7, "
                "or unsigned false"
            )
        if self.activation_bits is None and self.mistake is not None:
            raise ValueError(
                f"mistake {self.mistake} is one of activations and biases: give activation_bits"
            )
        return self

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """Check `options` and fill in the defaults; the first fault is a UserError."""
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            fault = error.errors()[0]
        name = fault["loc"][0] if fault["loc"] else None
        if name is None:
            raise UserError(fault["msg"].removeprefix("Value error, "))
        if name not in cls.model_fields:
            raise UserError(
                f"a quantized network has no option {name} (allowed: {', '.join(cls.model_fields)})"
            )
        allowed = fault["msg"].removeprefix("Input should be ")
        if type(None) in get_args(cls.model_fields[str(name)].annotation):
            allowed += ", or null"
        raise UserError(f"{name} of a quantized network is {fault['input']!r} (allowed: {allowed})")

    def as_options(self) -> dict[str, Any]:
        """Every option by its name: JSON, and what `of` takes."""
        return self.model_dump()

    @property
    def needs_moments(self) -> bool:
        """Whether a layer's weights or bias depend on what it receives."""
        return self.rounding == "gptq" or self.bias_correction or self.weight_range == "output"

    @property
    def has_histograms(self) -> bool:
        """Whether weights and activations have one scale each: int8 from image to logits."""
        return (
            self.activation_bits is not None
            and self.logits == "int8"
            and self.weight_scales == "tensor"
        )


def scheme_options(variant: dict[str, Any]) -> dict[str, Any]:
    """The options of a variant of the configuration: all but its name and its seeds."""
    return {key: value for key, value in variant.items() if key not in ("name", "seeds")}
