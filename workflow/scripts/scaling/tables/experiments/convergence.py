"""Table of the large-batch records: their runs."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scaling.config.technique import Technique
from scaling.core.records.convergence import ConvergenceRecord
from scaling.tables import schema
from scaling.tables.experiments.remedies import is_plain


def runs(records: Sequence[ConvergenceRecord]) -> pd.DataFrame:
    """Return one row per run, with metrics after its last epoch, NaN where not finite.

    A technique that could not run has one row with its `status` and `message`. `chosen` runs have
    the rate with the lowest loss, on held-out images or else in training. The chosen runs of
    `reference` are the baseline of all others: the reference batch on one GPU, plain SGD, with the
    widest learning rate sweep. `options` are those that differ from plain SGD's; `factor` 1 is the
    rate of the technique's rule; `at_edge` tells whether the sweep's best rate is at an end. Runs
    with `held_out` images have metrics of these, `validation_…`, and none of the test set.
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


def _reference(records: Sequence[ConvergenceRecord]) -> ConvergenceRecord | None:
    """Return the record of the reference, or None."""
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
    """Return the options that differ from plain SGD's and change a run, in words."""
    plain = Technique().model_dump(exclude={"factors", "lengths", "noise_scale"})
    changed = {name: value for name, value in record["options"].items() if name in plain}
    return ", ".join(
        (name if value else f"no {name}")
        if isinstance(value, bool)
        else f"{name} {format(value, 'g') if isinstance(value, float) else value}"
        for name, value in changed.items()
        if value != plain[name] and value is not None
    )
