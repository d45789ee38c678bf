"""The integer network: a layer worked out by hand, and all layers against int64 arithmetic."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.calibration import Calibration, Range, calibrate, layers
from scaling.errors import UserError
from scaling.quantized_inference import QuantizedLayer, with_int8_weights, with_integers
from scaling.tutorial_cnn import tutorial_cnn


def hand_layer(integer_bias: bool = True, bias: tuple[float, float] = (0.3, -0.1)) -> nn.Sequential:
    """A 2→2 layer with weight scale 100, image scale 100 (so S = 10,000) and output range ±2.54."""
    layer = nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[1.27, -0.5], [0.0, 0.2]])
    layer.bias.data = torch.tensor(bias)
    network = nn.Sequential()
    network.add_module("fc", layer)
    ranges = Calibration(images=Range(-1.0, 1.27), outputs={"fc": Range(-0.3, 2.54)})
    return with_integers(network, ranges, integer_bias=integer_bias)


def layers_of(quantized: nn.Sequential) -> list[QuantizedLayer]:
    return [module for module in quantized if isinstance(module, QuantizedLayer)]


@pytest.fixture
def images() -> Tensor:
    return torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def network() -> nn.Sequential:
    torch.manual_seed(0)
    return tutorial_cnn().eval()


def test_one_layer_computes_what_the_formulas_say() -> None:
    quantized = hand_layer()
    (layer,) = layers_of(quantized)
    assert layer.weight.tolist() == [[127, -50], [0, 20]]
    assert layer.weight_scale == pytest.approx(100)
    assert layer.accumulator_scale == pytest.approx(10_000)
    assert layer.output_scale == pytest.approx(0.005)
    # (1.0, 0.5) is (100, 50): 127·100 - 50·50 + 3000 = 13200 and 20·50 - 1000 = 0
    assert layer.accumulate(torch.tensor([[100.0, 50.0]])).tolist() == [[13200, 0]]
    # 13200 · 0.005 = 66, and 66 / 50 = 1.32 = 1.27·1.0 - 0.5·0.5 + 0.3
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]


def test_a_bias_is_rounded_in_the_scale_of_the_accumulator_or_left_a_float() -> None:
    bias = 0.00123, -0.00166
    assert layers_of(hand_layer(True, bias))[0].bias.tolist() == [12, -17]
    floats = layers_of(hand_layer(False, bias))[0].bias.tolist()
    assert floats == pytest.approx([12.3, -16.6], rel=1e-6)


def test_the_accumulator_bound_is_the_worst_input_times_the_weights() -> None:
    (layer,) = layers_of(hand_layer())
    assert layer.products_bound == (127 + 50) * 128
    assert layer.accumulator_bound == (127 + 50) * 128 + 3000
    assert layer.dtype == torch.float32


def test_a_sum_beyond_2_to_the_24_is_simulated_in_float64() -> None:
    inputs = 1040
    layer = nn.Linear(inputs, 1)
    layer.weight.data.fill_(1.0)
    network = nn.Sequential()
    network.add_module("fc", layer)
    ranges = Calibration(images=Range(0, 1), outputs={"fc": Range(0, 1)})
    (quantized,) = layers_of(with_integers(network, ranges, integer_bias=True))
    assert quantized.products_bound == 127 * 128 * inputs > 2**24
    assert quantized.dtype == torch.float64
    # An odd sum beyond 2^24, which a float32 cannot hold: 127·127·1040 - 127·1.
    steps = torch.full((1, inputs), 127.0)
    steps[0, 0] = 126
    quantized.bias.zero_()
    assert quantized.accumulate(steps).item() == 127 * 127 * inputs - 127


def test_a_bias_too_large_for_an_int32_accumulator_is_refused() -> None:
    with pytest.raises(UserError, match=r"fc could add up to 2\.15e\+09, more than an int32 holds"):
        hand_layer(bias=(1e6, 0.0))


def test_a_layer_of_zeros_is_refused_by_name(network: nn.Sequential, images: Tensor) -> None:
    calibration = calibrate(network, [images])
    layers(network)["fc2"].weight.data.zero_()
    with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
        with_integers(network, calibration, integer_bias=True)
    with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
        with_int8_weights(network)


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


def test_calibration_leaves_no_hook_behind(network: nn.Sequential, images: Tensor) -> None:
    calibrate(network, [images])
    assert not any(module._forward_hooks for module in network.modules())


def test_each_scale_is_the_product_of_all_before_it(network: nn.Sequential, images: Tensor) -> None:
    calibration = calibrate(network, [images])
    quantized = with_integers(network, calibration, integer_bias=True)
    scale = 127 / images.abs().max().item()
    for (name, float_layer), layer in zip(
        layers(network).items(), layers_of(quantized), strict=True
    ):
        scale *= 127 / float_layer.weight.abs().max().item()
        assert layer.accumulator_scale == pytest.approx(scale)
        largest = calibration.outputs[name].max_abs
        assert layer.accumulator_scale * layer.output_scale * largest == pytest.approx(127)
        assert torch.equal(layer.bias, torch.round(float_layer.bias.double() * scale))
        scale *= layer.output_scale


def test_every_layer_receives_integers_that_int8_holds(
    network: nn.Sequential, images: Tensor
) -> None:
    quantized = with_integers(network, calibrate(network, [images]), integer_bias=False)
    seen = []
    for layer in layers_of(quantized):
        layer.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0]))
    quantized(3 * images)
    assert len(seen) == 5
    for values in seen:
        assert torch.equal(values, values.round())
        assert values.min() >= -128 and values.max() <= 127


def test_no_calibration_value_needs_a_step_beyond_127(
    network: nn.Sequential, images: Tensor
) -> None:
    calibration = calibrate(network, [images])
    quantized = with_integers(network, calibration, integer_bias=True)
    for name, layer in zip(layers(network), layers_of(quantized), strict=True):
        steps = torch.tensor(calibration.outputs[name].max_abs).double() * layer.passed_scale
        assert torch.round(steps) == 127


def in_int64(quantized: nn.Sequential, images: Tensor) -> Tensor:
    """The logits by int64 arithmetic alone, but for one float64 product per requantization."""

    def requantize(values: Tensor, scale: float) -> Tensor:
        return (values.double() * scale).round().long().clamp(-128, 127)

    def pool(values: Tensor) -> Tensor:
        n, channels, height, width = values.shape
        return values.view(n, channels, height // 2, 2, width // 2, 2).amax(dim=(3, 5))

    conv1, conv2, fc1, fc2, fc3 = layers_of(quantized)
    x = requantize(images, quantized.quantize.scale)
    for conv in (conv1, conv2):
        x = functional.conv2d(x, conv.weight.long(), conv.bias.long())
        x = pool(requantize(x, conv.output_scale).clamp(min=0))
    x = x.flatten(1)
    for linear in (fc1, fc2, fc3):
        x = x @ linear.weight.long().T + linear.bias.long()
        x = requantize(x, linear.output_scale)
        if linear is not fc3:
            x = x.clamp(min=0)
    return x


def test_the_float_simulation_gives_the_logits_of_int64_arithmetic(
    network: nn.Sequential, images: Tensor
) -> None:
    quantized = with_integers(network, calibrate(network, [images]), integer_bias=True)
    beyond_calibration = 1.5 * images
    expected = in_int64(quantized, beyond_calibration)
    assert torch.equal(quantized(beyond_calibration).long(), expected)
    assert expected.unique().numel() > 50


def test_int8_weights_are_off_by_half_a_step_at_most_and_leave_the_original_alone(
    network: nn.Sequential,
) -> None:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    copied = with_int8_weights(network)
    for name, layer in layers(copied).items():
        original = layers(network)[name]
        step = original.weight.abs().max() / 127
        assert (layer.weight - original.weight).abs().max() <= 0.501 * step
        assert not torch.equal(layer.weight, original.weight)
        assert torch.equal(layer.bias, original.bias)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
