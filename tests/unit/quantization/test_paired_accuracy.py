import pytest
import torch

from scaling.quantization.compare import paired


def test_accuracy_difference_and_agreement_are_counted_over_all_test_images() -> None:
    labels = torch.tensor([5, 6, 7, 8])
    found = paired(labels, torch.tensor([5, 6, 7, 0]), torch.tensor([5, 6, 1, 8]))
    assert found == {
        "accuracy_percent": 75.0,
        "difference_points": 0.0,
        "standard_error_points": pytest.approx(100 * (2 / 3) ** 0.5 / 2),
        "agreement_percent": 50.0,
        "gained": 1,
        "lost": 1,
        "test_images": 4,
    }


def test_the_standard_error_is_that_of_the_paired_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    labels, first, second = (torch.randint(0, 3, (500,), generator=generator) for _ in range(3))
    found = paired(labels, first, second)
    differences = (second == labels).double() - (first == labels).double()
    assert found["difference_points"] == pytest.approx(100 * differences.mean().item())
    expected = 100 * differences.std().item() / 500**0.5
    assert found["standard_error_points"] == pytest.approx(expected)


def test_networks_that_agree_differ_by_nothing_for_certain() -> None:
    labels = torch.tensor([0, 1, 2])
    found = paired(labels, labels, labels)
    assert (found["difference_points"], found["standard_error_points"]) == (0, 0)
