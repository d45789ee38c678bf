"""Which batches of an epoch recipe tuned prepares."""

import json

import pytest

from scaling.training import tuned
from training_runs import TUNED, run


@pytest.mark.parametrize(
    ("samples", "batch_size", "prepared"),
    [
        (50_000, 128, [128]),
        (50_000, 8192, [8192]),
        (12_500, 8192, [8192, 4308]),
        (100, 95, [95, 5]),
        (100, 96, [96]),
        (96, 32, [32]),
    ],
)
def test_a_last_batch_is_prepared_from_a_twentieth_of_the_images_on(samples, batch_size, prepared):
    sizes = tuned._batch_sizes(samples, batch_size)
    assert sum(sizes) == samples
    assert tuned._worth_preparing(sizes) == prepared


def test_the_record_says_which_batches_were_compiled(images, tmp_path):
    options = {**json.loads(TUNED["recipe-options"]), "compile": True}
    asked = {**TUNED, "batch-size": 30, "recipe-options": json.dumps(options)}
    record = run(images, tmp_path / "run.json", **asked)
    assert record["training"]["compiled_batch_sizes"] == [30, 10]
    assert [row["samples"] for row in record["epochs"]] == 4 * [40]
