"""The tutorial CNN and its weights file."""

from pathlib import Path

import pytest
import torch

from scaling.core.errors import UserError
from scaling.models.tutorial_cnn import load_weights, save_weights, tutorial_cnn


def test_it_is_the_network_of_the_tutorial():
    network = tutorial_cnn()
    assert sum(parameter.numel() for parameter in network.parameters()) == 62_006
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert all(network.get_submodule(f"fc{i}").bias is not None for i in (1, 2, 3))


def test_saved_weights_are_loaded_unchanged_and_ready_to_evaluate(tmp_path):
    network = tutorial_cnn()
    save_weights(network, tmp_path / "new" / "weights.pt")
    loaded = load_weights(tmp_path / "new" / "weights.pt")
    images = torch.randn(4, 3, 32, 32)
    assert torch.equal(loaded(images), network(images))
    assert not loaded.training


def test_equal_weights_give_equal_files(tmp_path):
    network = tutorial_cnn()
    for name in ("one.pt", "another.pt"):
        save_weights(network, tmp_path / name)
    assert (tmp_path / "one.pt").read_bytes() == (tmp_path / "another.pt").read_bytes()


def complaint(path):
    with pytest.raises(UserError) as caught:
        load_weights(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


BAD = "is missing, damaged, or of another network than the tutorial CNN; train it with"


@pytest.mark.parametrize("keep", [None, 0, 1000, -1000])
def test_a_missing_or_cut_weights_file_is_refused_in_one_sentence(tmp_path, keep):
    path = tmp_path / "weights.pt"
    if keep is not None:
        save_weights(tutorial_cnn(), path)
        path.write_bytes(path.read_bytes()[:keep])
    assert f"weights.pt {BAD}" in complaint(path)


class Trap:
    """Unpickled without care, it creates a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def test_a_weights_file_with_code_in_it_is_refused_and_runs_nothing(tmp_path):
    torch.save({"conv1.weight": Trap(tmp_path / "sprung")}, tmp_path / "weights.pt")
    assert BAD in complaint(tmp_path / "weights.pt")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("content", [{"conv1.weight": torch.zeros(6, 3, 3, 3)}, [1.0], {1: 2}])
def test_the_weights_of_another_network_are_refused(tmp_path, content):
    torch.save(content, tmp_path / "weights.pt")
    assert BAD in complaint(tmp_path / "weights.pt")


def test_weights_that_are_not_finite_are_refused(tmp_path):
    network = tutorial_cnn()
    network.get_parameter("fc1.bias").data[3] = float("nan")
    save_weights(network, tmp_path / "weights.pt")
    assert "infinite or not a number" in complaint(tmp_path / "weights.pt")
