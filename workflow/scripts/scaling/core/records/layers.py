"""Record fields that describe the layers of a quantized network (Part B)."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from scaling.core.records.fields import Amount, Fraction, Pair, Positive, Seconds, Whole


class Entrance(TypedDict):
    """How the input images are quantized: `scale` in levels per unit, `steps` from the first to the
    last level, noise in dB."""

    scale: Amount
    range: Pair
    clipped_share_calibration: Fraction | None
    steps: list[int]
    clipped_share_test: Fraction | None
    sqnr_db: float | None


class Layer(TypedDict):
    """A layer of a quantized network; see `quantization.layer_statistics`.

    Fields of activation scales are absent where only weights are quantized.
    """

    layer: str
    weight_bits: Positive
    weight_scale: Amount
    weight_scale_max: Amount
    weight_range: Pair
    weight_clipped_share: Fraction
    weight_sqnr_db: float | None
    packed_bytes: Positive
    float32_bytes: Positive
    input_scale: NotRequired[Amount]
    accumulator_scale: NotRequired[Amount]
    largest_bias: NotRequired[float]
    bias_steps: NotRequired[float]
    bias_error_steps: NotRequired[Amount]
    output_scale: NotRequired[Amount | None]
    output_steps: NotRequired[list[int] | None]
    output_range: NotRequired[Pair]
    top_step: NotRequired[Amount | None]
    products_bound: NotRequired[Whole]
    accumulator_bound: NotRequired[Whole]
    float32_exact: NotRequired[bool]
    clipped_share_calibration: NotRequired[Fraction | None]
    clipped_share_test: Fraction | None
    clipped_share_before_relu: Fraction | None
    sqnr_before_relu_db: float | None
    sqnr_after_relu_db: float | None
    propagated_sqnr_db: float | None


class Counts(TypedDict):
    """A histogram: the number of values between consecutive edges, in float units."""

    bin_edges: list[float]
    counts: list[Whole]


class Histogram(TypedDict):
    """The distribution of one quantity of a layer before and after quantization."""

    layer: str
    quantity: str
    scale: Amount
    float: Counts
    int8: Counts


class ResNetLayer(TypedDict):
    """A layer of an integer ResNet-18."""

    weight_scales: Literal["tensor", "channel"]
    layer: str
    products_bound: Whole
    accumulator_bound: Whole
    float32_exact: bool
    packed_bytes: Positive


class GpuSpeed(TypedDict):
    """Seconds of a layer's matrix product on a GPU; for the whole network without its sizes."""

    layer: str
    patches: NotRequired[Positive]
    inner: NotRequired[Positive]
    outputs: NotRequired[Positive]
    int8_seconds: Seconds
    bfloat16_seconds: Seconds
