"""Part B on a GPU, from the training to the record. Skipped without."""

import pytest
import torch

from examples import quantized_digits as examples

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

RESNET = {"model": "resnet18-cifar", "model_width": 4, "device": "cuda"}
TRAINING = {
    "epochs": 2,
    "batch_size": 20,
    "weight_decay": 5e-4,
    "crop_padding": 0,
    "horizontal_flip": False,
}
RECIPE = {"recipe": "plain", "engine": "eager", "recipe_options": {"loader_workers": 0}}


def test_integers_equal_their_simulation(tmp_path):
    examples.write_images(tmp_path, 300, 100)
    examples.train(tmp_path, "weights.pt", **RESNET, **TRAINING, **RECIPE)
    examples.evaluate(tmp_path, "resnet.json", **RESNET)
    record = examples.document(tmp_path, "resnet")
    exact = [row["exactness"] for row in record["stages"] if "exactness" in row]
    assert exact == [{"logits": 1000, "differing": 0}] * 2


def test_the_tutorial_cnn_gives_the_same_integers_too(tmp_path):
    examples.write_images(tmp_path, 300, 100)
    examples.train(tmp_path, "weights.pt", device="cuda", epochs=2)
    examples.evaluate(tmp_path, "", device="cuda", variants={examples.LAST: {}})
    assert examples.record(tmp_path)["exactness"] == {"logits": 1000, "differing": 0}
