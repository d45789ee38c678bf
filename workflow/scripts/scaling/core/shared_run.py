"""A run on one GPU serves every strategy: it is one plain process for all of them."""

from dataclasses import fields

from scaling.core.grid import Cell
from scaling.core.records import RunRecord
from scaling.training.run_spec import RunSpec


def as_strategy(record: RunRecord, strategy: str) -> RunRecord:
    """The record of a single-GPU run as that of the same run under another `strategy`.

    `measured_as` keeps the strategy it was measured under. Raises ValueError for several GPUs.
    """
    cell = Cell(**{**record["cell"], "strategy": strategy})
    if cell.gpus != 1:
        raise ValueError(f"a run of {cell.gpus} GPUs serves its own strategy only")
    parameters = {
        field.name: record["training"][field.name]
        for field in fields(RunSpec)
        if field.name != "cell"
    }
    return {
        **record,
        "cell": vars(cell).copy(),
        "environment": {
            **record["environment"],
            "config_digest": RunSpec(cell=cell, **parameters).digest(),
        },
        "measured_as": record["cell"]["strategy"],
    }
