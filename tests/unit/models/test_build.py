"""Models of the project, of torchvision and of users, by name. Untrainable models are refused."""

import pytest
from torch import nn

from examples.stored import SOURCE
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Model
from scaling.models.build import blocks, build
from scaling.models.check import check
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.registry import registry

LAB = "resnet18-cifar"
OWN = """
from torch import nn

def linear(classes, bias=True):
    return nn.Sequential(nn.Flatten(), nn.Linear(243, classes, bias=bias))

class Looks(nn.Module):
    def forward(self, values):
        return values if values.max().item() < 9 else -values

def looks(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(243, classes), Looks())

def text(classes):
    return "a network"

def ten(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(243, 10))

def lazy(classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))

def frozen(classes):
    return linear(classes).requires_grad_(False)

class Unused(nn.Sequential):
    def forward(self, values):
        return self[1](self[0](values))

def unused(classes):
    return Unused(*linear(classes), nn.Linear(2, 2))
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    registry.loaded.cache_clear()
    return f"{tmp_path}/own.py"


def test_model_is_the_projects_torchvisions_or_the_users(own):
    assert isinstance(build(Model(width=1), 10), ResNet18)
    # The count that torchvision documents.
    wide = build(Model(name="resnet50", options={"width_per_group": 128}), 1000)
    assert sum(parameter.numel() for parameter in wide.parameters()) == 68_883_240
    made = build(Model(name=f"{own}:linear", options={"bias": False}), 7)
    assert made[1].out_features == 7 and made[1].bias is None


def study(name=LAB, size=32, batch=8, parts=1, gpus=(1,), strategy="ddp", **options):
    recipe = {"engine": "eager", "strategies": None}
    grid = {"recipes": ["plain"], "strategies": [strategy], "gpus": gpus, "seeds": [0]}
    return {
        "model": {"name": name, "options": options},
        "dataset": {"image_size": size, "source": "synthetic", "train_images": 128},
        "grid": grid | {"batch_sizes": [64, batch]},
        "recipes": {"plain": recipe},
        "training": {"micro_batches": parts},
        "time_to_accuracy": {},
        "parts": ["scaling"],
    }


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (study("resnet5"), r"model.name is 'resnet5' \(allowed: resnet18-cifar; a classification"),
        (study("OWN:absent"), "there is no .*own.py:absent"),
        (study("absent_module:net"), "there is no absent_module:net"),
        (study("OWN:text"), "'str' object has no attribute"),
        (study("OWN:linear", depth=3), "unexpected keyword argument 'depth'"),
        (study("alexnet"), r"alexnet fails on 2 images of 32 × 32 pixels \("),
        (study("resnet18", batch=1), "1 image of 32 × 32 .*more than 1 value per channel"),
        (study("resnet18", batch=4, parts=4), "1 image of 32 × 32"),
        (study("resnet18", batch=127), "1 image .*, the last of plain, 1 GPU"),
        (study("resnet18", batch=31, gpus=[4], strategy="dp"), "the last of plain/dp, 4"),
        (study("googlenet", size=224), r"it returns GoogLeNetOutputs, .*\(2, 3\) is needed"),
        (study("OWN:ten", size=9), r"returns \(2, 10\), where \(2, 3\) is needed"),
        (study("OWN:lazy", size=9), "an uninitialized parameter"),
        (study("OWN:frozen", size=9), "does not require grad"),
        (study("OWN:unused", size=9), r"gives 2 of 4 parameters no gradient, 2\.weight the first"),
    ],
)
def test_untrainable_model_is_refused_before_any_job(own, tmp_path, config, said):
    made = DATASET.read(SOURCE / "manifest.json") | {"classes": list("abc"), "train_images": 128}
    DATASET.write(tmp_path / "manifest.json", made)
    config["model"]["name"] = config["model"]["name"].replace("OWN", own)
    with pytest.raises(UserError, match=said):
        check(config, tmp_path / "manifest.json")


def test_trainable_model_is_accepted(own, tmp_path):
    for name, size in (("OWN:linear", 9), ("OWN:looks", 9), ("vit_b_16", 224), (LAB, 64)):
        config = study(name.replace("OWN", own), size=size)
        check(config, tmp_path / "absent.json")


def test_blocks_are_the_repeated_parts_of_a_network():
    assert [type(block) for block in blocks(ResNet18(1, 2))] == 8 * [BasicBlock]
    transformer = build(Model(name="vit_b_16"), 2)
    assert {type(block).__name__ for block in blocks(transformer)} == {"EncoderBlock"}
    assert blocks(nn.Linear(2, 2)) == []
