import pytest
import torch

from scaling.models.resnet import ResNet18


def test_the_model_of_the_literature_has_11173962_parameters():
    assert sum(parameter.numel() for parameter in ResNet18().parameters()) == 11_173_962


@pytest.mark.parametrize(("width", "classes"), [(1, 10), (4, 3)])
def test_ten_logits_for_each_image_at_any_width(width, classes):
    assert ResNet18(width, classes)(torch.zeros(2, 3, 32, 32)).shape == (2, classes)
