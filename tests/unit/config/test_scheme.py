import pytest

from scaling.config.scheme import Scheme
from scaling.core.errors import UserError


def test_single_mistake_may_be_given_as_text():
    assert Scheme.of({"mistake": None}) == Scheme()
    assert Scheme.of({"mistake": "bias_scale"}) == Scheme(mistakes=["bias_scale"])


def test_weights_alone_leave_biases_and_logits_floats():
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
