"""The integer network: a layer worked out by hand, its options, its invariants."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.calibration import Calibration, Range, calibrate, count_magnitudes, layers
from scaling.quantization.gptq import output_errors
from scaling.quantization.layer_statistics import scale_row
from scaling.quantization.network import QuantizedLayer, with_integers, with_quantized_weights
from scaling.quantization.rounding import LayerInputs, round_layer

PLAIN = Scheme()


def hand_layer(scheme: Scheme = PLAIN, bias: tuple[float, float] = (0.3, -0.1)) -> nn.Sequential:
    """A 2→2 layer with weight scale 100, image scale 100 (so S = 10,000) and output range ±2.54."""
    layer = nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[1.27, -0.5], [0.0, 0.2]])
    layer.bias.data = torch.tensor(bias)
    network = nn.Sequential()
    network.add_module("fc", layer)
    ranges = Calibration(images=Range(-1.0, 1.27), outputs={"fc": Range(-0.3, 2.54)})
    return with_integers(network, ranges, scheme)


def layers_of(quantized: nn.Sequential) -> list[QuantizedLayer]:
    return [module for module in quantized if isinstance(module, QuantizedLayer)]


def test_one_layer_computes_what_the_formulas_say() -> None:
    quantized = hand_layer()
    (layer,) = layers_of(quantized)
    assert layer.weight.tolist() == [[127, -50], [0, 20]]
    assert layer.rounded.scales.tolist() == pytest.approx([100, 100])
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 10_000])
    assert layer.requantization.factor.tolist() == pytest.approx([0.005, 0.005])
    # (1.0, 0.5) is (100, 50): 127·100 - 50·50 + 3000 = 13200 and 20·50 - 1000 = 0
    assert layer.accumulate(torch.tensor([[100.0, 50.0]])).tolist() == [[13200, 0]]
    # 13200 · 0.005 = 66, and 66 / 50 = 1.32 = 1.27·1.0 - 0.5·0.5 + 0.3
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]


def test_float_logits_are_the_accumulator_in_the_units_of_the_float_network() -> None:
    quantized = hand_layer(Scheme(logits="float"))
    assert quantized(torch.tensor([[1.0, 0.5]])).flatten().tolist() == pytest.approx([1.32, 0])


def test_a_scale_for_each_channel_uses_all_steps_in_each_row() -> None:
    quantized = hand_layer(Scheme(weight_scales="channel"))
    (layer,) = layers_of(quantized)
    assert layer.weight.tolist() == [[127, -50], [0, 127]]
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 63_500])
    # 127·50 - 0.1·63,500 = 0, and the same units come out.
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]


def test_four_bits_have_seven_steps_for_weights_and_eight_below_zero_for_activations() -> None:
    quantized = hand_layer(Scheme(weight_bits=4, activation_bits=4))
    (layer,) = layers_of(quantized)
    assert layer.weight.tolist() == [[7, -3], [0, 1]]
    assert quantized.quantize(torch.tensor([[1.27, -9.0]])).tolist() == [[7, -8]]
    assert (layer.input_levels.low, layer.input_levels.high) == (-8, 7)
    assert (layer.levels.low, layer.levels.high) == (-128, 127)  # logits are int8


def test_a_bias_is_rounded_in_the_scale_of_the_accumulator_or_left_a_float() -> None:
    bias = 0.00123, -0.00166
    assert layers_of(hand_layer(bias=bias))[0].bias.tolist() == [12, -17]
    floats = layers_of(hand_layer(Scheme(bias="float"), bias))[0].bias.tolist()
    assert floats == pytest.approx([12.3, -16.6], rel=1e-6)


def test_the_accumulator_bound_is_the_worst_input_times_the_weights() -> None:
    (layer,) = layers_of(hand_layer())
    assert layer.products_bound == (127 + 50) * 128
    assert layer.accumulator_bound == (127 + 50) * 128 + 3000


def fewest_inputs_beyond_2_to_the_24() -> int:
    """So many inputs of -128 by weights of 127 add up to just more than 2^24; one less does not."""
    return 2**24 // (127 * 128) + 1


@pytest.mark.parametrize(("inputs", "exact"), [(-1, True), (0, False)])
def test_float32_is_exact_up_to_2_to_the_24_and_not_beyond(inputs: int, exact: bool) -> None:
    count = fewest_inputs_beyond_2_to_the_24() + inputs
    layer = nn.Linear(count, 1, bias=True)
    layer.weight.data.fill_(1.0)
    layer.bias.data.zero_()
    network = nn.Sequential()
    network.add_module("fc", layer)
    ranges = Calibration(images=Range(0, 1), outputs={"fc": Range(0, 1)})
    (quantized,) = layers_of(with_integers(network, ranges, PLAIN))
    assert quantized.accumulator_bound == 127 * 128 * count
    row = scale_row(quantized, "fc", ranges)
    assert row["float32_exact"] is exact is (quantized.accumulator_bound <= 2**24)
    # The worst input, and all that are a step or two away from it: odd sums among them.
    worst = torch.full((3, count), -128.0)
    worst[1, 0], worst[2, 0] = -127, -126
    sums = quantized.accumulate(worst)
    true = [-127 * (128 * count - less) for less in (0, 1, 2)]
    assert sums.flatten().tolist() == true
    in_float32 = [float(torch.tensor(value, dtype=torch.float32)) for value in true]
    assert (in_float32 == true) is exact


def test_a_bias_too_large_for_an_int32_accumulator_is_refused() -> None:
    with pytest.raises(UserError, match=r"fc could add up to 2\.15e\+09, more than an int32 holds"):
        hand_layer(bias=(1e6, 0.0))


def test_a_layer_of_zeros_is_refused_by_name(network: nn.Sequential, images: Tensor) -> None:
    calibration = calibrate(network, [images])
    layers(network)["fc2"].weight.data.zero_()
    for scheme in (PLAIN, Scheme(weight_scales="channel", weight_range="mse")):
        with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
            with_integers(network, calibration, scheme)
        with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
            with_quantized_weights(network, scheme)


def test_a_row_of_zeros_in_a_layer_stays_zeros(network: nn.Sequential, images: Tensor) -> None:
    layers(network)["fc2"].weight.data[3] = 0
    scheme = Scheme(weight_scales="channel", weight_range="mse")
    quantized = with_integers(network, calibrate(network, [images]), scheme)
    assert not quantized.fc2.weight[3].any() and quantized.fc2.weight[4].any()


def test_calibration_keeps_the_extremes_of_all_batches_after_relu(
    network: nn.Sequential, images: Tensor
) -> None:
    # The first and the last batch hold the extremes; either alone would miss one.
    images[0, 0, 0, 0], images[-1, 0, 0, 0] = 50, -60
    found = calibrate(network, images.split(10))
    assert (found.images.minimum, found.images.maximum) == (-60, 50)
    with torch.no_grad():
        first = torch.relu(functional.conv2d(images, network.conv1.weight, network.conv1.bias))
        last = network(images)
    assert found.outputs["conv1"].minimum == 0
    assert found.outputs["conv1"].max_abs == pytest.approx(first.max().item())
    assert found.outputs["fc3"].minimum == pytest.approx(last.min().item())
    assert found.outputs["fc3"].max_abs == pytest.approx(last.abs().max().item())
    count_magnitudes(network, images.split(10), found)
    # What the next layer receives: of four values the largest, so that fewer are zero.
    assert found.magnitudes["conv1"].counts.sum() == first.numel() / 4
    zeros = found.magnitudes["conv1"].counts[0] / (first.numel() / 4)
    assert zeros < (first < first.max() / 4096).float().mean()
    assert found.magnitudes["images"].counts.sum() == images.numel()


def test_calibration_leaves_no_hook_behind(network: nn.Sequential, images: Tensor) -> None:
    calibrate(network, [images])
    assert not any(module._forward_hooks for module in network.modules())


def test_each_scale_is_the_product_of_all_before_it(network: nn.Sequential, images: Tensor) -> None:
    calibration = calibrate(network, [images])
    quantized = with_integers(network, calibration, PLAIN)
    scale = 127 / images.abs().max().item()
    for (name, float_layer), layer in zip(
        layers(network).items(), layers_of(quantized), strict=True
    ):
        scale *= 127 / float_layer.weight.abs().max().item()
        assert layer.accumulator_scale[0].item() == pytest.approx(scale)
        largest = calibration.outputs[name].max_abs
        factor = layer.requantization.factor[0].item()
        assert layer.accumulator_scale[0].item() * factor * largest == pytest.approx(127)
        assert torch.equal(layer.bias, torch.round(float_layer.bias.double() * scale))
        scale *= factor


@pytest.mark.parametrize(
    "scheme",
    [
        Scheme(bias="float"),
        Scheme(weight_scales="channel", activation_bits=5),
        Scheme(activation_bits=3, unsigned=True),
    ],
)
def test_every_layer_receives_integers_of_its_bits(
    network: nn.Sequential, images: Tensor, scheme: Scheme
) -> None:
    quantized = with_integers(network, calibrate(network, [images]), scheme)
    seen = []
    for layer in layers_of(quantized):
        layer.register_forward_pre_hook(lambda layer, inputs: seen.append((layer, inputs[0])))
    quantized(3 * images)
    assert len(seen) == 5
    for layer, values in seen:
        assert torch.equal(values, values.round())
        assert values.min() >= layer.input_levels.low and values.max() <= layer.input_levels.high
    bits = scheme.activation_bits
    reached = max(values.max().item() for _, values in seen[1:])
    assert reached == (2**bits - 1 if scheme.unsigned else 2 ** (bits - 1) - 1)


def test_int8_weights_are_off_by_half_a_step_at_most_and_leave_the_original_alone(
    network: nn.Sequential,
) -> None:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    copied, rounded = with_quantized_weights(network, PLAIN)
    for name, layer in layers(copied).items():
        original = layers(network)[name]
        step = original.weight.abs().max() / 127
        assert (layer.weight - original.weight).abs().max() <= 0.501 * step
        assert not torch.equal(layer.weight, original.weight)
        assert torch.equal(layer.bias, original.bias)
        assert torch.equal(layer.weight, rounded[name].float_weight.float())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_gptq_and_a_corrected_bias_bring_the_outputs_of_few_bits_closer(
    network: nn.Sequential, images: Tensor
) -> None:
    with torch.no_grad():
        exact = network(images)

        def error(scheme: Scheme) -> float:
            inputs = LayerInputs(images.split(10))
            return float(
                (with_quantized_weights(network, scheme, inputs)[0](images) - exact).norm()
            )

        plain = error(Scheme(weight_bits=3))
        by_gptq = error(Scheme(weight_bits=3, rounding="gptq"))
        corrected = error(Scheme(weight_bits=3, rounding="gptq", bias_correction=True))
    assert by_gptq < 0.8 * plain and corrected < by_gptq


def test_layers_are_rounded_for_what_the_layers_before_pass_on(
    network: nn.Sequential, images: Tensor
) -> None:
    calibration = calibrate(network, [images])
    plain = {"weight_bits": 3, "activation_bits": 3, "unsigned": True, "logits": "float"}
    with torch.no_grad():
        exact = network(images).double()
        spread = (exact - exact.mean(dim=0)).norm()

        def error(**options: object) -> float:
            inputs = LayerInputs(images.split(10))
            made = with_integers(network, calibration, Scheme.of(plain | options), inputs)
            return float((made(images) - exact).norm() / spread)

        shift_taken = error(bias_correction=True)
        every_error = error(bias_correction=True, rounding="gptq", weight_range="output")
        assert every_error < 0.8 * shift_taken < 0.8 * error()


@pytest.mark.parametrize("weight_scales", ["tensor", "channel"])
def test_a_range_by_the_output_error_gives_no_larger_one_than_other_ranges(
    network: nn.Sequential, images: Tensor, weight_scales: str
) -> None:
    conv1 = layers(network)["conv1"]
    moments = LayerInputs([images]).moments(conv1)

    def error(weight_range: str) -> float:
        options = {"weight_bits": 3, "rounding": "gptq", "weight_scales": weight_scales}
        rounded = round_layer(
            "conv1", conv1, Scheme.of(options | {"weight_range": weight_range}), moments
        )
        difference = (rounded.float_weight - conv1.weight.detach()).flatten(1)
        return float(output_errors(difference, moments.second_moment).sum())

    assert error("output") < error("max_abs")
    assert error("output") <= 1.02 * error("mse")  # Whose reaches are other hundredths.
