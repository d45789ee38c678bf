"""What the records of remedies say: a table of runs, of their epochs, of their loss curves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from scaling.config.technique import Technique
from scaling.core.records.convergence import ConvergenceRecord
from scaling.tables import schema
from scaling.tables.experiments.best_remedy import is_plain


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """One row per run, figures after its last epoch, NaN where not finite.

    A remedy that could not run keeps one row with its `status` and `message`. `chosen` runs have
    the rate with the lowest loss, of held-out images or else in training; the chosen ones of
    `reference` are what every other is compared with: the reference batch on one GPU, plain SGD,
    with the widest sweep of the rate there is. `options` are those of the remedy that differ from
    plain SGD's, "scaling linear" say, "" for none. `factor` 1 is the rate of the remedy's rule;
    `at_edge`: the sweep found its best rate at one of its ends. Runs with images
    `held_out` have figures of these, `validation_…`, and none of the test set, whose figures are by
    the statistics of batch norms that the technique or the study asks for; by either they stand
    beside them. A run that diverged may have fewer `epochs` and `updates` than `planned_…`.
    """
    reference = _reference(records)
    rows = []
    for record in records:
        own: dict[str, Any] = {
            **record,
            "options": _options(record),
            "reference": record is reference,
        }
        if not record["result"]:
            rows.append(own)
            continue
        own |= record["result"] | {"batch_size": record["global_batch"] // record["result"]["gpus"]}
        for run in record["result"]["runs"]:
            rows.append({**own, **run["epochs"][-1], **run, "epochs": len(run["epochs"])})
    return schema.frame("convergence", rows)


def epochs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """One row per run and epoch; `updates` so far."""
    rows = [{**own, **epoch} for own, run in _runs(records) for epoch in run["epochs"]]
    return schema.frame("convergence_epochs", rows)


def curves(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """The training loss over the updates of each record's first seed.

    A point is the mean over the updates since the one before it; `update` is the last of them.
    """
    rows = [
        {**own, "update": min(run["updates_per_point"] * index, run["updates"]), "train_loss": loss}
        for own, run in _runs(records)
        if run["seed"] == own["training"]["seeds"][0]
        for index, loss in enumerate(run["losses"], start=1)
    ]
    return schema.frame("loss_curves", rows)


def _runs(records: Sequence[ConvergenceRecord]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each run beside what tells it from others."""
    for record in records:
        for run in record["result"]["runs"] if record["result"] else []:
            yield {**record, **run}, run


def _reference(records: Sequence[ConvergenceRecord]) -> ConvergenceRecord | None:
    """The record of the reference, None where none is it."""
    plain = [
        (len({run["factor"] for run in record["result"]["runs"]}), record)
        for record in records
        if record["result"]
        and record["global_batch"] == record["training"]["reference_batch"]
        # At the reference batch every scaling rule gives the base rate.
        and is_plain(_options(record))
    ]
    return max(plain, key=lambda each: each[0])[1] if plain else None


def _options(record: ConvergenceRecord) -> str:
    """The options that differ from plain SGD's and change a run, each in words."""
    plain = Technique().model_dump(exclude={"factors", "lengths", "noise_scale"})
    changed = {name: value for name, value in record["options"].items() if name in plain}
    return ", ".join(
        (name if value else f"no {name}")
        if isinstance(value, bool)
        else f"{name} {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in changed.items()
        if value != plain[name] and value is not None
    )
