import json

import pytest

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError


def test_a_scheme_is_json_and_back() -> None:
    scheme = Scheme.of({"weight_bits": 4, "rounding": "gptq", "activation_bits": None})
    assert scheme == Scheme(weight_bits=4, rounding="gptq", activation_bits=None)
    assert Scheme.of(json.loads(json.dumps(scheme.as_options()))) == scheme


def test_nothing_said_is_int8_from_image_to_logits() -> None:
    scheme = Scheme.of({})
    assert (scheme.weight_bits, scheme.activation_bits, scheme.bias, scheme.logits) == (
        *(8, 8),
        *("int32", "int8"),
    )
    assert scheme.has_histograms
    for options in ({"logits": "float"}, {"weight_scales": "channel"}, {"activation_bits": None}):
        assert not Scheme.of(options).has_histograms


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"weight_bits": 1}, "weight_bits of a quantized network is 1 .allowed: greater than or"),
        ({"weight_bits": "4"}, "weight_bits of a quantized network is '4' .allowed: a valid int"),
        ({"weight_bits": True}, "weight_bits of a quantized network is True"),
        ({"weight_bits": 4.0}, r"weight_bits of a quantized network is 4\.0"),
        ({"activation_bits": 9}, "activation_bits .* is 9 .allowed: less than .* 8, or null"),
        ({"rounding": "up"}, "rounding of .* is 'up' .allowed: 'nearest' or 'gptq'"),
        ({"bias_correction": 1}, "bias_correction of .* is 1 .allowed: a valid boolean"),
        ({"mistake": "rounding"}, "allowed: 'activation_scale', 'bias_scale', '255_for_127'"),
        ({"weight_bit": 4}, "has no option weight_bit .allowed: weight_bits"),
        ({"unsigned": True}, "unsigned activations of 8 bits do not fit int8"),
        ({"activation_bits": None, "mistake": "bias_scale"}, "is one of activations and biases"),
    ],
)
def test_what_is_not_allowed_is_named(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Scheme.of(options)
