"""What a model is worth and a training step costs, checked against counting by hand."""

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


def test_resnet18_for_cifar_costs_3_329_gflop_per_image():
    assert round(count_flops(ResNet18(width=64, classes=10)) / 1e9, 3) == 3.329


def test_two_layers_cost_what_a_person_counts():
    # First layer, 5 inputs and 4 outputs: 2·5·4 forward and as much for the weights' gradients,
    # none for the inputs', which are images. Second, 4 and 3: 2·4·3 forward, twice that backward.
    model = nn.Sequential(nn.Linear(5, 4, bias=False), nn.Linear(4, 3, bias=False))
    assert count_flops(model, image_shape=(5,)) == 2 * 40 + 3 * 24


def test_batch_normalisation_is_not_counted_and_not_moved():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4))
    before = copy.deepcopy(model.state_dict())
    assert count_flops(model, image_shape=(2, 8, 8)) == 2 * 5184
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_is_evaluated_by_its_running_statistics():
    # Red images: with a mean of 0 and a variance of 1 the logits are 1, 0, 0; by their own, all 0.
    pixels = np.zeros((4, 8, 8, 3), np.uint8) + np.array([255, 0, 0], np.uint8)
    data = ImageDataset(*2 * (pixels, np.zeros(4, np.int64)), ["red"])
    model = nn.Sequential(nn.BatchNorm2d(3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).train()
    found = evaluate(model, TrainingData(data, np.zeros(3), np.ones(3)), torch.device("cpu"))
    assert found["test_loss"] == pytest.approx(math.log(math.e + 2) - 1, abs=1e-4)
