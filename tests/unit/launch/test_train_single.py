"""One GPU is measured once for every strategy."""

from dataclasses import replace

import pytest

import train_single
from examples import records
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from training_runs import arguments, spec_of

NOT_KNOWN = dict.fromkeys(("recipe_applied", "compiled_batch_sizes", "compiled_graphs"))


def measured(tmp_path, gpus):
    """The spec of a run by ddp, and its record."""
    argv = arguments(tmp_path, tmp_path / "run.json", gpus=gpus)
    spec = spec_of(argv)
    epochs = records.epochs(spec.cell, *[2.5] * (spec.warmup_epochs + spec.measured_epochs))
    for row in epochs[: spec.warmup_epochs * gpus]:
        row["role"] = "warmup"
    record = records.record(spec.cell, epochs, environment={"config_digest": spec.digest()})
    record["model"] |= spec.model.model_dump()
    return spec, {**record, "training": {**spec.parameters(), **NOT_KNOWN}}


def test_the_same_measurement_stands_under_both_strategies(tmp_path):
    spec, record = measured(tmp_path, gpus=1)
    records.save(tmp_path, record)
    output = tmp_path / "dp" / "run.json"
    path = spec.cell.record_path(tmp_path)
    train_single.main(["--record", str(path), "--strategy", "dp", "--output", str(output)])
    shared = RUN.read(output)
    assert shared["cell"] == {**record["cell"], "strategy": "dp"}
    assert shared["measured_as"] == "ddp"
    assert shared["epochs"] == record["epochs"]
    as_dp = spec.model_copy(update={"cell": replace(spec.cell, strategy="dp")})
    assert shared["environment"]["config_digest"] == as_dp.digest() != spec.digest()


def test_a_run_on_several_gpus_is_not_shared(tmp_path):
    _, record = measured(tmp_path, gpus=2)
    with pytest.raises(UserError, match="a run of 2 GPUs"):
        train_single.as_strategy(record, "dp")
