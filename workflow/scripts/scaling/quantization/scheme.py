"""What one variant of a quantized network is: all its options in one value, which is JSON too."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_type_hints

from scaling.core.errors import UserError

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
"""What each mistake does, in a few words."""
STAGES = ("float32", "weights", "weights+activations", "weights+activations+bias")
"""The lab's stages in order: the name of the float network, and of three variants."""


@dataclass(frozen=True)
class Scheme:
    """The options of one quantized copy of a float network.

    `weight_bits` and `activation_bits` from 2 to 8. Without `activation_bits` (None) only weights
    are quantized, and activations, biases and logits stay floats. `bias` is rounded to int32 or a
    float in the accumulator's scale. `logits` are int8 whatever `activation_bits`, or the last
    accumulator divided by its scale. `unsigned` gives activations after ReLU 0 to 2^bits - 1.
    `weight_scales` are one for each tensor or for each output channel; `weight_range` and
    `activation_range` say how far they reach: `max_abs`, or less by clipping (see `ranges`), for
    weights also as far as gives each layer the least `output` error (see `weight_rounding`).
    `rounding` of the weights is to the nearest step or GPTQ's, which also makes up for the error of
    the layer's inputs; `bias_correction` takes the mean shift of each layer's output out of its
    bias (see `gptq`). A `mistake` is one of those that documents have made (see
    `quantization_mistakes`).
    """

    weight_bits: int = 8
    activation_bits: int | None = 8
    bias: Literal["int32", "float"] = "int32"
    logits: Literal["int8", "float"] = "int8"
    unsigned: bool = False
    weight_scales: Literal["tensor", "channel"] = "tensor"
    weight_range: Literal["max_abs", "mse", "output"] = "max_abs"
    activation_range: Literal["max_abs", "percentile", "mse"] = "max_abs"
    rounding: Literal["nearest", "gptq"] = "nearest"
    bias_correction: bool = False
    mistake: Mistake | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Scheme":
        """The scheme with `options`, the rest as above; UserError for what is not allowed."""
        allowed = get_type_hints(cls)
        for name, value in options.items():
            if name not in allowed:
                raise UserError(
                    f"a quantized network has no option {name} (allowed: {', '.join(allowed)})"
                )
            choices = _choices(allowed[name])
            # 4.0 and True equal 4 and 1, and are neither.
            if not any(type(value) is type(choice) and value == choice for choice in choices):
                shown = ", ".join("null" if choice is None else str(choice) for choice in choices)
                raise UserError(f"{name} of a quantized network is {value!r} (allowed: {shown})")
        scheme = cls(**options)
        if scheme.unsigned and scheme.activation_bits in (None, 8):
            raise UserError(
                "unsigned activations of 8 bits do not fit int8: give activation_bits of 2 to 7, "
                "or unsigned false"
            )
        if scheme.activation_bits is None and scheme.mistake is not None:
            raise UserError(
                f"mistake {scheme.mistake} is one of activations and biases: give activation_bits"
            )
        return scheme

    def as_options(self) -> dict[str, Any]:
        """Every option by its name: JSON, and what `of` takes."""
        return asdict(self)

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
    """What a variant of the configuration says of its scheme: all but its name and its seeds."""
    return {key: value for key, value in variant.items() if key not in ("name", "seeds")}


def _choices(kind: Any) -> list[Any]:
    """The values a field of that type may have."""
    if kind is bool:
        return [True, False]
    if kind is int:
        return list(range(2, 9))
    if kind is type(None):
        return [None]
    parts = get_args(kind)
    literal = all(isinstance(part, str) for part in parts)
    return list(parts) if literal else [one for part in parts for one in _choices(part)]
