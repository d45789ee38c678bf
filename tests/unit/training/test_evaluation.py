"""What a model is worth and a training step costs; for counting by hand see test_steps."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from scaling.data.dataset import ImageDataset
from scaling.models.resnet import ResNet18
from scaling.training.evaluation import count_flops, evaluate
from scaling.training.trainer import TrainingData


def test_resnet18_for_cifar_costs_3_329_gflop_per_image_and_is_not_moved():
    model = ResNet18(width=64, classes=10)
    before = copy.deepcopy(model.state_dict())
    assert round(count_flops(model) / 1e9, 3) == 3.329
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_is_evaluated_by_its_running_statistics():
    # Red images: with a mean of 0 and a variance of 1 the logits are 1, 0, 0; by their own, all 0.
    pixels = np.zeros((4, 8, 8, 3), np.uint8) + np.array([255, 0, 0], np.uint8)
    data = ImageDataset(*2 * (pixels, np.zeros(4, np.int64)), ["red"])
    model = nn.Sequential(nn.BatchNorm2d(3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    found = evaluate(model, TrainingData(data, np.zeros(3), np.ones(3)), torch.device("cpu"))
    assert found["test_loss"] == pytest.approx(math.log(math.e + 2) - 1, abs=1e-4)
