"""The integer network: a layer computed by hand, options, and invariants."""

import math
from itertools import product

import pytest
import torch
from torch import nn

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError
from scaling.models.tutorial_cnn import tutorial_cnn
from scaling.quantization.network import (
    IMAGES,
    calibrate,
    layers,
    packed_bytes,
    quantize,
    symmetric_scale,
    to_integers,
)


def network_and_images():
    """Return an untrained tutorial CNN, and 40 images of random pixels."""
    torch.manual_seed(0)
    return tutorial_cnn().eval(), torch.randn(40, 3, 32, 32)


def integers(network, images, **options):
    return quantize(network, Scheme(**options), calibrate(network, images.split(15)))


def float_layer(biases=(0.3, -0.1)):
    layer = nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[1.27, -0.5], [0.0, 0.2]])
    layer.bias.data = torch.tensor(biases)
    return nn.Sequential(layer)


def hand_layer(biases=(0.3, -0.1), **options):
    """Return a quantized 2→2 layer: weight and image scale 100, S = 10,000, output range ±2.54."""
    ranges = {IMAGES: (-1.0, 1.27), "0": (-0.3, 2.54)}
    made = quantize(float_layer(biases), Scheme(**options), ranges)
    return made, layers(made)["0"]


def test_one_layer_computes_what_the_formulas_say():
    quantized, layer = hand_layer()
    assert layer.products.weight.tolist() == [[127, -50], [0, 20]]
    assert layer.scales.tolist() == [[pytest.approx(100)]] * 2
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 10_000])
    assert layer.factor.tolist() == pytest.approx([0.005, 0.005])
    # (1.0, 0.5) is (100, 50): 127·100 - 50·50 + 3000 = 13200 and 20·50 - 1000 = 0
    assert layer.accumulate(torch.tensor([[100.0, 50.0]]).double()).tolist() == [[13200, 0]]
    # 13200 · 0.005 = 66, and 66 / 50 = 1.32 = 1.27·1.0 - 0.5·0.5 + 0.3
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]
    assert layer.accumulator_bound == (127 + 50) * 128 + 3000
    floats = hand_layer(logits="float")[0](torch.tensor([[1.0, 0.5]]))
    assert floats.flatten().tolist() == pytest.approx([1.32, 0])
    # Weights alone: 127 and 20 levels of a hundredth, all else as it was.
    alone = quantize(float_layer(), Scheme(activation_bits=None), {})
    assert alone[0].weight.flatten().tolist() == pytest.approx([1.27, -0.5, 0, 0.2], rel=1e-6)
    assert alone[0].bias.tolist() == float_layer()[0].bias.tolist()
    # A byte for each weight, four for each bias and the scale.
    packed = [packed_bytes(layer.products.weight, layer.scales, bits) for bits in (8, 4)]
    assert packed == [4 + 12, 2 + 12]


def test_channel_scales_use_all_levels_of_each_row():
    quantized, layer = hand_layer(weight_scales="channel")
    assert layer.products.weight.tolist() == [[127, -50], [0, 127]]
    assert layer.accumulator_scale.tolist() == pytest.approx([10_000, 63_500])
    # 127·50 - 0.1·63,500 = 0, and the same units come out.
    assert quantized(torch.tensor([[1.0, 0.5]])).tolist() == [[66, 0]]
    assert packed_bytes(layer.products.weight, layer.scales, 8) == 4 + 8 + 8
    quantized, layer = hand_layer(weight_bits=4, activation_bits=4)
    assert layer.products.weight.tolist() == [[7, -3], [0, 1]]
    assert quantized.quantize(torch.tensor([[1.27, -9.0]])).tolist() == [[7, -8]]
    assert layer.bits == 8  # logits are int8


def test_bias_has_the_accumulators_scale_or_stays_float():
    small = 0.00123, -0.00166
    assert hand_layer(small)[1].bias.tolist() == [12, -17]
    assert hand_layer(small, bias="float")[1].bias.tolist() == pytest.approx([12.3, -16.6])
    with pytest.raises(UserError, match=r"0 could add up to 2\.15e\+09, more than an int32 holds"):
        hand_layer((1e6, 0.0))


def test_sums_that_float32_does_not_hold_are_exact():
    # So many inputs of -128 by weights of 127 add up to just more than 2^24.
    count = 2**24 // (127 * 128) + 1
    layer = nn.Linear(count, 1)
    layer.weight.data.fill_(1.0)
    layer.bias.data.zero_()
    ranges = {IMAGES: (0, 1), "0": (0, 1)}
    quantized = layers(quantize(nn.Sequential(layer), Scheme(), ranges))["0"]
    # The worst input, and one that is a step away from it: an odd sum.
    worst = torch.full((2, count), -128.0).double()
    worst[1, 0] = -127
    true = [-127 * (128 * count - less) for less in (0, 1)]
    assert quantized.accumulate(worst).flatten().tolist() == true
    assert float(torch.tensor(true[1], dtype=torch.float32)) != true[1]


def test_layer_without_a_scale_is_refused_and_row_of_zeros_kept():
    network, images = network_and_images()
    network.fc2.weight.data[3] = 0
    made = layers(integers(network, images, weight_scales="channel"))["fc2"]
    assert not made.products.weight[3].any()
    assert made.products.weight[2].any() and made.scales[3] > 0
    network.fc2.weight.data.zero_()
    for value, options in product((0.0, math.inf, math.nan), ({}, {"activation_bits": None})):
        network.fc2.weight.data[0, 0] = value
        with pytest.raises(UserError, match="the weights of fc2 have no int8 scale"):
            integers(network, images, **options)


def test_ranges_are_those_after_relu_over_all_batches():
    network, images = network_and_images()
    found = calibrate(network, images.split(15))
    first = network.relu1(network.conv1(images))
    assert found["conv1"] == (0, first.max().item())
    assert found["fc3"][0] < 0 and found[IMAGES] == (images.min(), images.max())


def test_floats_round_half_to_even_and_clip_at_last_level():
    scale = symmetric_scale(2.54, "the values")
    assert scale == 50
    values = torch.tensor([-2.54, -1.0, 0.0, 0.52, 2.0, 2.56, -9.0])
    assert to_integers(values, scale, 8).tolist() == [-127, -50, 0, 26, 100, 127, -128]
    halves = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    assert to_integers(halves, 1.0, 8).tolist() == [0, 2, 2, 0, -2]
    assert to_integers(9 * halves, 1.0, 3).tolist() == [3, 3, 3, -4, -4]
    # A bias beyond int32 saturates instead of wrapping.
    biases = torch.tensor([1.26, -3e9, 2147483520.0])
    assert to_integers(biases, 10.0, 32).tolist() == [13, -(2**31), 2**31 - 1]


def test_scheme_of_options_keeps_floats_beside_weights_alone():
    assert Scheme.of({"mistake": None}) == Scheme()
    assert Scheme.of({"mistake": "bias_scale"}) == Scheme(mistakes=["bias_scale"])
    scheme = Scheme.of({"activation_bits": None})
    assert (scheme.bias, scheme.logits) == ("float", "float")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"weight_bits": 1}, "invalid scheme: weight_bits is 1: it should be greater than or"),
        ({"weight_bit": 4}, "the scheme has the unknown key weight_bit, perhaps weight_bits"),
        ({"activation_bits": None, "mistakes": ["bias_scale"]}, "is a mistake of activations: giv"),
        ({"activation_bits": None, "bias": "int32"}, "bias is int32, which needs activation_bits"),
        ({"mistake": "typo"}, r"mistake\[0\] is 'typo': it should be 'activation_scale', "),
        ({"mistake": None, "mistakes": []}, "the unknown key mistake, perhaps mistakes"),
    ],
)
def test_disallowed_option_is_named(options, complaint):
    with pytest.raises(UserError, match=complaint):
        Scheme.of(options, "the scheme")
