"""Models of the project, of torchvision and of users, by name. Untrainable models are refused."""

import pytest
from torch import nn

from examples.configurations import ROOT, changed
from examples.stored import SOURCE
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Model
from scaling.models.build import blocks, build
from scaling.models.check import check
from scaling.models.resnet import BasicBlock, ResNet18

LAB = "resnet18-cifar"
OWN = f"{ROOT}/tests/own_models.py"


def test_model_is_the_projects_torchvisions_or_the_users():
    assert isinstance(build(Model(width=1), 10), ResNet18)
    # The count that torchvision documents.
    wide = build(Model(name="resnet50", options={"width_per_group": 128}), 1000)
    assert sum(parameter.numel() for parameter in wide.parameters()) == 68_883_240
    made = build(Model(name=f"{OWN}:linear", options={"bias": False}), 7)
    assert made[1].out_features == 7 and made[1].bias is None


def study(name=LAB, size=32, batch=8, parts=1, gpus=(1,), strategy="ddp", **options):
    grid = {"recipes": ["plain"], "strategies": [strategy], "gpus": gpus, "seeds": [0]}
    return changed(
        ("model", {"name": name, "options": options}),
        ("dataset", {"image_size": size, "source": "synthetic", "train_images": 128}),
        ("grid", grid | {"batch_sizes": [64, batch]}),
        ("training.micro_batches", parts),
        ("parts", ["scaling"]),
    )


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (study("resnet5"), r"model.name is 'resnet5' \(allowed: resnet18-cifar; a classification"),
        (study(f"{OWN}:absent"), "there is no .*own_models.py:absent"),
        (study("absent_module:net"), "there is no absent_module:net"),
        (study(f"{OWN}:text"), "'str' object has no attribute"),
        (study(f"{OWN}:linear", depth=3), "unexpected keyword argument 'depth'"),
        (study("alexnet"), r"alexnet fails on 2 images of 32 × 32 pixels \("),
        (study("resnet18", batch=1), "1 image of 32 × 32 .*more than 1 value per channel"),
        (study("resnet18", batch=4, parts=4), "1 image of 32 × 32"),
        (study("resnet18", batch=127), "1 image .*, the last of plain, 1 GPU"),
        (study("resnet18", batch=31, gpus=[4], strategy="dp"), "the last of plain/dp, 4"),
        (study("googlenet", size=224), r"it returns GoogLeNetOutputs, .*\(2, 3\) is needed"),
        (study(f"{OWN}:ten"), r"returns \(2, 10\), where \(2, 3\) is needed"),
        (study(f"{OWN}:lazy"), "an uninitialized parameter"),
        (study(f"{OWN}:frozen"), "does not require grad"),
        (study(f"{OWN}:unused"), r"gives 2 of 4 parameters no gradient, 2\.weight the first"),
    ],
)
def test_untrainable_model_is_refused_before_any_job(tmp_path, config, said):
    made = DATASET.read(SOURCE / "manifest.json") | {"classes": list("abc"), "train_images": 128}
    DATASET.write(tmp_path / "manifest.json", made)
    with pytest.raises(UserError, match=said):
        check(config, tmp_path / "manifest.json")


def test_trainable_model_is_accepted(tmp_path):
    own = (f"{OWN}:linear", 32), (f"{OWN}:plain", 32)
    for name, size in (*own, ("vit_b_16", 224), (LAB, 64)):
        check(study(name, size=size), tmp_path / "absent.json")


def test_blocks_are_the_repeated_parts_of_a_network():
    assert [type(block) for block in blocks(ResNet18(1, 2))] == 8 * [BasicBlock]
    transformer = build(Model(name="vit_b_16"), 2)
    assert {type(block).__name__ for block in blocks(transformer)} == {"EncoderBlock"}
    assert blocks(nn.Linear(2, 2)) == []
