"""Part B on a GPU, from training to record. Skipped without a GPU."""

import pytest
import torch

from examples import quantized_digits as examples

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_int8_on_a_gpu_costs_little(tmp_path):
    examples.write_images(tmp_path, 300, 100)
    examples.train(tmp_path, "weights.pt", device="cuda", epochs=2)
    examples.evaluate(tmp_path, "", device="cuda", variants={examples.LAST: {}})
    assert abs(examples.record(tmp_path)["difference_points"]) <= 5
