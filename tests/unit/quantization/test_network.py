"""The integer network: a layer worked out by hand, its options, its invariants."""

import pytest
import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.quantization.calibration import (
    IMAGES,
    Range,
    calibrate,
    layers,
    observer_points,
)
from scaling.quantization.integers import INT8
from scaling.quantization.network import exactness, quantize, quantized_layers

PLAIN = Scheme()


def calibrated(network, images):
    return calibrate(network, images.split(15), observer_points(network))


def integers(network, images, scheme=PLAIN):
    return quantize(network, scheme, calibrated(network, images))


def float_layer(bias=(0.3, -0.1)):
    layer = nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[1.27, -0.5], [0.0, 0.2]])
    layer.bias.data = torch.tensor(bias)
    return nn.Sequential(layer)


def hand_layer(scheme=PLAIN, bias=(0.3, -0.1)):
    """A 2→2 layer with weight scale 100, image scale 100 (so S = 10,000) and output range ±2.54."""
    ranges = {IMAGES: Range(-1.0, 1.27), "0": Range(-0.3, 2.54)}
    return quantize(float_layer(bias), scheme, ranges)


def layers_of(quantized):
    return list(quantized_layers(quantized).values())


def test_one_layer_computes_what_the_formulas_say():
    quantized = hand_layer()
    (layer,) = layers_of(quantized)
    assert layer.rounded.weight.tolist() == [[127, -50], [0, 20]]
    assert layer.rounded.scales.tolist() == pytest.approx([100, 100])
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 10_000])
    assert layer.requantization.factor.tolist() == pytest.approx([0.005, 0.005])
    # (1.0, 0.5) is (100, 50): 127·100 - 50·50 + 3000 = 13200 and 20·50 - 1000 = 0
    assert layer.accumulate(torch.tensor([[100.0, 50.0]])).tolist() == [[13200, 0]]
    # 13200 · 0.005 = 66, and 66 / 50 = 1.32 = 1.27·1.0 - 0.5·0.5 + 0.3
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]
    assert layer.accumulator_bound == (127 + 50) * 128 + 3000
    floats = hand_layer(Scheme(logits="float"))(torch.tensor([[1.0, 0.5]]))
    assert floats.flatten().tolist() == pytest.approx([1.32, 0])
    # Weights alone: 127 and 20 levels of a hundredth, all else as it was.
    alone = quantize(float_layer(), Scheme(activation_bits=None))
    assert alone[0].weight.flatten().tolist() == pytest.approx([1.27, -0.5, 0, 0.2], rel=1e-6)
    assert alone[0].bias.tolist() == float_layer()[0].bias.tolist()
    # A byte for each weight, four for each bias and the scale.
    assert (layer.rounded.packed_bytes(8), layer.rounded.packed_bytes(4)) == (4 + 12, 2 + 12)


def test_a_scale_for_each_channel_uses_all_levels_in_each_row_and_four_bits_have_few():
    quantized = hand_layer(Scheme(weight_scales="channel"))
    (layer,) = layers_of(quantized)
    assert layer.rounded.weight.tolist() == [[127, -50], [0, 127]]
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 63_500])
    # 127·50 - 0.1·63,500 = 0, and the same units come out.
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]
    assert layer.rounded.packed_bytes(8) == 4 + 8 + 8
    quantized = hand_layer(Scheme(weight_bits=4, activation_bits=4))
    assert layers_of(quantized)[0].rounded.weight.tolist() == [[7, -3], [0, 1]]
    assert quantized.quantize(torch.tensor([[1.27, -9.0]])).tolist() == [[7, -8]]
    assert layers_of(quantized)[0].levels == INT8  # logits are int8


def test_a_bias_is_rounded_in_the_scale_of_the_accumulator_or_left_a_float():
    bias = 0.00123, -0.00166
    assert layers_of(hand_layer(bias=bias))[0].bias.tolist() == [12, -17]
    floats = layers_of(hand_layer(Scheme(bias="float"), bias))[0].bias.tolist()
    assert floats == pytest.approx([12.3, -16.6], rel=1e-6)


def test_sums_that_float32_does_not_hold_are_exact():
    # So many inputs of -128 by weights of 127 add up to just more than 2^24.
    count = 2**24 // (127 * 128) + 1
    layer = nn.Linear(count, 1)
    layer.weight.data.fill_(1.0)
    layer.bias.data.zero_()
    ranges = {IMAGES: Range(0, 1), "0": Range(0, 1)}
    (quantized,) = layers_of(quantize(nn.Sequential(layer), PLAIN, ranges))
    assert quantized.accumulator_bound == 127 * 128 * count
    # The worst input, and all that are a step or two away from it: odd sums among them.
    worst = torch.full((3, count), -128.0)
    worst[1, 0], worst[2, 0] = -127, -126
    true = [-127 * (128 * count - less) for less in (0, 1, 2)]
    assert quantized.accumulate(worst).flatten().tolist() == true
    assert [float(torch.tensor(value, dtype=torch.float32)) for value in true] != true


def test_a_bias_too_large_for_an_int32_accumulator_is_refused():
    with pytest.raises(UserError, match=r"0 could add up to 2\.15e\+09, more than an int32 holds"):
        hand_layer(bias=(1e6, 0.0))


def test_a_layer_of_zeros_is_refused_by_name_and_a_row_of_zeros_stays(network, images):
    calibration, fc2 = calibrated(network, images), layers(network)["fc2"]
    fc2.weight.data[3] = 0
    layer = integers(network, images, Scheme(weight_scales="channel")).fc2
    assert not layer.rounded.weight[3].any()
    assert layer.rounded.weight[2].any() and layer.rounded.scales[3] > 0
    fc2.weight.data.zero_()
    for changed in ({}, {"activation_bits": None}):
        with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
            quantize(network, Scheme.of(changed), calibration)


def test_ranges_are_those_after_relu(network, images):
    calibration = calibrated(network, images)
    with torch.no_grad():
        first = network.relu1(network.conv1(images))
    seen = calibration["conv1"]
    assert (seen.minimum, seen.maximum) == (0, first.max().item())
    assert calibration["fc3"].minimum < 0
    assert not any(module._forward_hooks for module in network.modules())


def test_each_scale_is_the_product_of_all_before_it(network, images):
    calibration = calibrated(network, images)
    scale = 127 / images.abs().max().item()
    for layer in layers_of(integers(network, images)):
        floats = layers(network)[layer.name]
        scale *= 127 / floats.weight.abs().max().item()
        assert layer.accumulator_scale[0].item() == pytest.approx(scale)
        assert torch.equal(layer.bias, torch.round(floats.bias.double() * scale))
        factor = layer.requantization.factor[0].item()
        assert scale * factor * calibration[layer.name].max_abs == pytest.approx(127)
        scale *= factor


SCHEMES = [
    Scheme(),
    Scheme(bias="float"),
    Scheme(weight_scales="channel", logits="float"),
    Scheme(weight_bits=4, activation_bits=4),
    Scheme(weight_bits=3),
    Scheme(mistakes=["activation_scale"]),
    Scheme(mistakes=["no_product"]),
    Scheme(mistakes=["bias_scale"]),
]


@torch.no_grad()
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_integers_alone_give_the_logits_of_the_simulation_bit_for_bit(network, images, scheme):
    quantized = integers(network, images, scheme)
    received: dict[torch.dtype, list[Tensor]] = {torch.float64: [], torch.int8: []}
    for layer in layers_of(quantized):
        layer.register_forward_pre_hook(lambda _, inputs: received[inputs[0].dtype].append(*inputs))
    beyond_calibration = 1.5 * images
    simulated = quantized(beyond_calibration)
    assert exactness(quantized, beyond_calibration, simulated) == {"logits": 400, "differing": 0}
    # Layers receive the same integers both ways, int8 ones without the simulation, in their levels.
    assert len(received[torch.int8]) == 5
    for layer, floats, ints in zip(layers_of(quantized), *received.values(), strict=True):
        assert torch.equal(floats, ints.double())
        assert layer.input_levels.low <= ints.min() and ints.max() <= layer.input_levels.high
    reached = max(values.max().item() for values in received[torch.int8][1:])
    assert scheme.mistakes or reached == layer.input_levels.high
    simulated[7, 3] += 1e-9
    assert exactness(quantized, beyond_calibration, simulated)["differing"] == 1
