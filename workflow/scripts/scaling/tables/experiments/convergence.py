"""What the records of remedies say: a table of runs, of their epochs, of their loss curves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from scaling.config.technique import Technique
from scaling.core.records import ConvergenceRecord
from scaling.tables import schema
from scaling.tables.experiments.best_remedy import is_plain

_RUN = ["remedy", "global_batch", "seed", "factor", "learning_rate", "chosen"]
COLUMNS = schema.columns("convergence")
EPOCH_COLUMNS = schema.columns("convergence_epochs")
CURVE_COLUMNS = schema.columns("loss_curves")


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """One row per run, columns `COLUMNS`, figures after its last epoch, NaN where not finite.

    A remedy that could not run keeps one row with its `status` and `message`. `chosen` runs have
    the rate with the lowest training loss; the chosen ones of `reference` are what every other is
    compared with: the reference batch on one GPU, plain SGD, with the widest sweep of the rate
    there is. `options` are those of the remedy that differ from plain SGD's, "scaling linear" say,
    "" for none. `factor` 1 is the rate of the remedy's rule, `rule_rate`; `at_edge`: the sweep
    found its best rate at one of its ends. A run that diverged may have fewer `epochs` and
    `updates` than `planned_…`.
    """
    reference = _reference(records)
    rows = []
    for record in records:
        own: dict[str, Any] = {key: record[key] for key in ("remedy", "global_batch")}
        own |= {"status": record["status"], "message": record["message"]}
        own["options"] = _options(record)
        own["reference"] = reference == (record["remedy"], record["global_batch"])
        result = record["result"]
        if result is None:
            rows.append(own)
            continue
        shared = ("gpus", "rule_rate", "at_edge", "updates_per_epoch", "reference_updates")
        own |= {key: result[key] for key in shared}
        own["batch_size"] = record["global_batch"] // result["gpus"]
        rows += [
            {**own, **run["epochs"][-1], **run, "epochs": len(run["epochs"])}
            for run in result["runs"]
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def epochs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """One row per run and epoch, columns `EPOCH_COLUMNS`; `updates` so far."""
    rows = [{**own, **epoch} for own, run in _runs(records) for epoch in run["epochs"]]
    return pd.DataFrame(rows, columns=EPOCH_COLUMNS)


def curves(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """The training loss over the updates of each record's first seed, columns `CURVE_COLUMNS`.

    A point is the mean over the updates since the one before it; `update` is the last of them.
    """
    rows = []
    for own, run in _runs(records):
        step, losses = run["updates_per_point"], run["losses"]
        if run["seed"] == own["first_seed"]:
            rows += [
                {**own, "update": min(step * (index + 1), run["updates"]), "train_loss": loss}
                for index, loss in enumerate(losses)
            ]
    return pd.DataFrame(rows, columns=CURVE_COLUMNS)


def _runs(records: Sequence[ConvergenceRecord]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for record in records:
        result = record["result"]
        for run in result["runs"] if result else []:
            own = {"remedy": record["remedy"], "global_batch": record["global_batch"]}
            own |= {key: run[key] for key in ("seed", "factor", "learning_rate", "chosen")}
            own["first_seed"] = record["training"]["seeds"][0]
            yield own, run


def _reference(records: Sequence[ConvergenceRecord]) -> tuple[str, int] | None:
    """Remedy and global batch of the reference, None where no record is it."""
    plain = [
        record
        for record in records
        if record["result"]
        and record["global_batch"] == record["training"]["reference_batch"]
        # At the reference batch every scaling rule gives the base rate.
        and is_plain(_options(record))
    ]
    if not plain:
        return None
    widest = max(plain, key=lambda record: len({run["factor"] for run in _result(record)["runs"]}))
    return widest["remedy"], widest["global_batch"]


def _options(record: ConvergenceRecord) -> str:
    """The options that differ from plain SGD's, but for the sweep, each in words."""
    plain = Technique().model_dump(exclude={"factors"})
    changed = {name: value for name, value in record["options"].items() if name in plain}
    return ", ".join(
        (name if value else f"no {name}")
        if isinstance(value, bool)
        else f"{name} {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in changed.items()
        if value != plain[name]
    )


def _result(record: ConvergenceRecord) -> dict[str, Any]:
    assert record["result"] is not None
    return record["result"]
