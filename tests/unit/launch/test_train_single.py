"""One GPU is measured once for every strategy."""

from dataclasses import replace

import train_single
from examples import records
from scaling.core.records.run import RUN
from training_runs import arguments, spec_of

NOT_KNOWN = dict.fromkeys(("recipe_applied", "compiled_batch_sizes", "compiled_graphs"))


def test_the_same_measurement_stands_under_both_strategies(tmp_path):
    spec = spec_of(arguments(tmp_path, tmp_path / "run.json"))
    epochs = records.epochs(spec.cell, *[2.5] * spec.epochs)
    epochs[0]["role"] = "warmup"
    record = records.record(spec.cell, epochs, environment={"config_digest": spec.digest()})
    record["model"] |= spec.model.model_dump()
    record["training"] = {**spec.parameters(), **NOT_KNOWN}
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
