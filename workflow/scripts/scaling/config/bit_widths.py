"""Variants of a quantized network with fewer bits, listed by method."""

from typing import Any, Literal

from pydantic import Field

from scaling.config.key_types import Distinct
from scaling.config.scheme import Bits
from scaling.core.section import Section

Method = Literal["max_abs", "mse", "gptq"]
METHODS: dict[Method, dict[str, Any]] = {
    "max_abs": {},
    "mse": {"weight_range": "mse", "activation_range": "mse"},
    "gptq": {
        "weight_scales": "channel",
        "weight_range": "output",
        "activation_range": "mse",
        "rounding": "gptq",
        "bias_correction": True,
    },
}


class BitWidths(Section):
    """Bit widths for each method: each is a variant such as `w4a8-gptq`."""

    weights: Distinct[Bits] = Field(default_factory=list)
    """Bits of weights, with 8-bit activations: `w4a8-…`. May be left out, like the next three."""
    activations: Distinct[Bits] = Field(default_factory=list)
    """Bits of activations, with 8-bit weights: `w8a4-…`."""
    both: Distinct[Bits] = Field(default_factory=list)
    """Bits of weights and of activations: `w4a4-…`."""
    methods: Distinct[Method] = Field(default_factory=lambda: list(METHODS))
    """`max_abs` is plain, `mse` sets all ranges by the least mean squared error, `gptq` combines
    all improvements."""

    def variants(self) -> list[dict[str, Any]]:
        """Return the corresponding entries of `quantization.variants`."""
        pairs = [(bits, 8) for bits in self.weights]
        pairs += [(8, bits) for bits in self.activations]
        pairs += [(bits, bits) for bits in self.both]
        return [_variant(*pair, method) for pair in pairs for method in self.methods]


def _variant(weights: int, activations: int, method: Method) -> dict[str, Any]:
    bits = {"weight_bits": weights, "activation_bits": activations}
    variant = {"name": f"w{weights}a{activations}-{method}"}
    variant |= {key: value for key, value in bits.items() if value != 8} | METHODS[method]
    return variant | ({"unsigned": True} if method == "gptq" and activations < 8 else {})
