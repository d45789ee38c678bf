"""The options of one quantized variant of a network, with their checks."""

from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, model_validator

from scaling.core.section import Section

Bits = Annotated[int, Ge(2), Le(8)]
Scales = Literal["activation_scale", "bias_scale", "255_for_127", "bias_unscaled", "no_product"]
Mistake = Literal[Scales, "one_image", "test_data"]
MISTAKES: dict[Mistake, str] = {
    "activation_scale": "the output factor is 127 · max / S instead of 127 / (max · S)",
    "bias_scale": "a bias is rounded at scale (2³¹ − 1) / S instead of S",
    "255_for_127": "the output factor has 255 in the place of 127, where int8 clips",
    "bias_unscaled": "a bias is added to the accumulator without its scale S",
    "no_product": "S is weight scale times image scale, without the layers between them",
    "one_image": "the activations are calibrated on one image",
    "test_data": "the activations are calibrated on the test images",
}
"""Maps each error that a variant can make on purpose to its description."""
STAGES = ("float32", "weights", "weights+activations", "weights+activations+bias")
"""Stages of the quantization exercise: the float network, then three quantized variants."""


def _listed(mistakes: Any) -> Any:
    """Return the names of deliberate errors as a list: [name] for one name, [] for None."""
    return [mistakes] if isinstance(mistakes, str) else mistakes or []


class Scheme(Section):
    """Options of one variant. A variant is a quantized copy of a float network."""

    model_config = ConfigDict(frozen=True)

    weight_bits: Bits = 8
    """Bits of all weights, from 2 to 8."""
    activation_bits: Bits | None = 8
    """Bits of all activations, from 2 to 8. Null: activations, biases and logits stay floats."""
    bias: Literal["int32", "float"] = "int32"
    """Type of biases, which are scaled like the accumulator: `int32` (rounded) or `float`."""
    logits: Literal["int8", "float"] = "int8"
    """Type of logits: `int8`, also if `activation_bits` is below 8, or `float` (the last
    accumulator divided by its scale)."""
    weight_scales: Literal["tensor", "channel"] = "tensor"
    """Scales of weights: one per `tensor`, or one per output `channel`. No weight is clipped."""
    mistakes: Annotated[list[Mistake], BeforeValidator(_listed)] = Field(
        default_factory=list, validation_alias=AliasChoices("mistakes", "mistake")
    )
    """Errors made on purpose: a list, or one name in `mistake`. S is the scale of the accumulator.
    Wrong output factor: `activation_scale` (127 · max / S), `255_for_127` (255 / (max · S)). Wrong
    bias scale: `bias_scale` ((2³¹ − 1) / S), `bias_unscaled` (1). Wrong S: `no_product` (scale of
    the images, not of the layer's inputs). Calibration on `one_image`, or on `test_data`."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.activation_bits is None:
            if self.mistakes:
                message = f"{self.mistakes[0]} is a mistake of activations: give activation_bits"
                raise ValueError(message)
            for key in {"bias", "logits"} & self.model_fields_set:
                if (value := getattr(self, key)) != "float":
                    raise ValueError(
                        f"{key} is {value}, which needs activation_bits, that are null"
                    )
            vars(self).update(bias="float", logits="float")
        return self
