"""Synchronization measured with real processes, and comparisons of image orders and statistics."""

import hashlib

import numpy as np
import pytest

from examples.small_trainings import measure
from scaling.core.errors import UserError
from scaling.models.resnet import ResNet18
from scaling.registry.strategy import STRATEGIES
from scaling.synchronization.worker import drift, orders_of


@pytest.fixture(scope="module")
def document(images, tmp_path_factory):
    return measure(images, tmp_path_factory.mktemp("synchronization") / "synchronization.json")


def trained(document, **conditions):
    return [one for one in document["trainings"] if conditions.items() <= one.items()]


def test_order_repeats_without_set_epoch(document):
    kinds = [(one["buffers"], one["set_epoch"], one["seed"]) for one in document["trainings"]]
    both = [("broadcast", told, seed) for seed in (0, 1, 2) for told in (True, False)]
    assert kinds == [*both, ("local", True, 0)]
    for told, different in ((True, 4), (False, 2)):
        for one in trained(document, set_epoch=told):
            assert len({row["order_sha256"] for row in one["orders"]}) == different
            assert {(row["overlap"], row["repeated"]) for row in one["orders"]} == {(0, 0)}
    # The first epoch is the same with and without set_epoch.
    told, untold = trained(document, buffers="broadcast", seed=0)
    assert told["orders"][0] == untold["orders"][0]


def test_parameters_are_the_same_bit_for_bit_and_buffers_are_not(document):
    of_kinds = [
        trained(document, buffers=kind, set_epoch=True, seed=0)[0]["ranks"]
        for kind in ("broadcast", "local")
    ]
    assert len({rank["parameters_sha256"] for ranks in of_kinds for rank in ranks}) == 1
    for ranks in of_kinds:
        assert len({rank["buffers_sha256"] for rank in ranks}) == 2


def test_messages_of_ranks_agree_and_match_the_formulas(document):
    ways = [one["way"] for one in document["steps"]]
    assert ways == ["ddp", "ddp, buffers local", "fsdp", "zero1"]
    parameters, buffers = (document["model"][f"{of}_bytes"] for of in ("parameter", "buffer"))
    assert parameters == 4 * sum(own.numel() for own in ResNet18(1, 2).parameters())
    # What each GPU sends round a ring, of the bytes of a message.
    ring = {"all_gather": 1, "broadcast": 0.5, "reduce_scatter": 0.5, "all_reduce": 1}
    for one in document["steps"]:
        assert one["ranks_agree"]
        last = [row for row in one["messages"] if row["step"] == 3]
        if one["way"] in ("fsdp", "zero1"):
            sent = sum(row["bytes"] * ring[row["kind"]] for row in last)
            sent -= buffers / 2 * (one["way"] == "zero1")
            formula = STRATEGIES.find(one["way"]).busiest_bytes(2, parameters)
            assert sent == pytest.approx(formula, rel=0.05)
            continue
        sent = [row["bytes"] for row in last if row["phase"] == "backward"]
        assert sent == one["bucket_bytes"] and sum(sent) == parameters
        forward = sum(row["bytes"] for row in last if row["phase"] == "forward")
        assert forward == (buffers if one["way"] == "ddp" else 0)


def test_batch_above_train_images_is_refused_with_its_key(images, tmp_path):
    with pytest.raises(UserError, match=r"2·10 = 20 .*synchronization\.batch_size"):
        measure(images, tmp_path / "out.json", train_images=15)


def test_overlap_is_the_largest_over_pairs_of_ranks():
    # 0 shares images 1 and 2 with 1, image 0 with 2; 1 and 2 share nothing. 8 draws, 5 images.
    rows = orders_of([np.array(order) for order in ([0, 1, 2], [1, 2, 3], [0, 4])], 7, epoch=0)
    assert [row["overlap"] for row in rows] == [2, 2, 1]
    assert [row["samples"] for row in rows] == [3, 3, 2]
    assert {(row["unseen"], row["repeated"]) for row in rows} == {(2, 3)}
    row, _ = orders_of([np.array([1, 0, 1]), np.array([2])], images=4, epoch=0)
    expected = hashlib.sha256(bytes([1, *[0] * 7, *[0] * 8, 1, *[0] * 7])).hexdigest()
    assert (row["order_sha256"], row["overlap"], row["repeated"]) == (expected, 0, 1)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        # Variances 3 and 5, range 2 over mean 4; the other channel has equal ones.
        ([[3, 9], [5, 9]], [0.5, 0.25]),
        # A training that diverged has none; a channel that never varies is left out.
        ([[1, np.nan]] * 2, [None, None]),
        ([[1, 0], [3, 0]], [1.0, 1.0]),
        ([[0.0]] * 2, [0.0, 0.0]),
    ],
)
def test_drift_is_range_relative_to_the_mean(ranks, expected):
    found = drift([np.array(variances, dtype=float) for variances in ranks])
    assert found == dict(zip(("variance_max", "variance_mean"), expected, strict=True))
