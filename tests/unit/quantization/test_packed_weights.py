import pytest
import torch

from scaling.quantization.integers import weight_steps
from scaling.quantization.packed_weights import layer_bytes, pack, unpack


@pytest.mark.parametrize("bits", range(2, 9))
def test_packed_weights_come_back_and_leave_no_gap(bits: int) -> None:
    steps = weight_steps(bits)
    generator = torch.Generator().manual_seed(bits)
    weight = torch.randint(steps.low, steps.high + 1, (3, 5, 7), generator=generator)
    packed = pack(weight.to(torch.int8), bits)
    assert len(packed) == -(-3 * 5 * 7 * bits // 8)
    assert torch.equal(unpack(packed, bits, (3, 5, 7)).long(), weight)


def test_a_layer_is_its_packed_weights_an_int32_bias_for_each_output_and_its_scales() -> None:
    weight = torch.zeros(10, 84, dtype=torch.int8)
    assert layer_bytes(weight, 8, scales=1) == 840 + 40 + 4
    assert layer_bytes(weight, 4, scales=10) == 420 + 40 + 40
