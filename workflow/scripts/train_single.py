"""Write a strategy's record of a single-GPU run from the one measured for another strategy.

On one GPU all strategies are the same process: measuring it twice would give two baselines that
differ by noise.
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.run import RUN, RunRecord
from scaling.core.training_options import Model
from scaling.launch.run_spec import RunSpec
from scaling.registry.strategy import STRATEGIES


def as_strategy(record: RunRecord, strategy: str) -> RunRecord:
    """Return the record of a single-GPU run for another `strategy`.

    `measured_as` is the strategy it was measured under. Raises UserError for several GPUs.
    """
    cell = Cell(**{**record["cell"], "strategy": STRATEGIES.find(strategy).name})
    if cell.gpus != 1:
        raise UserError(f"a run of {cell.gpus} GPUs serves its own strategy only: train {cell}")
    used = record["training"]
    parameters = {key: used[key] for key in RunSpec.model_fields if key in used}
    parameters["model"] = Model(**{key: record["model"][key] for key in Model.model_fields})
    digest = RunSpec(cell=cell, **parameters).digest()
    return {
        **record,
        "cell": vars(cell).copy(),
        "environment": {**record["environment"], "config_digest": digest},
        "measured_as": record["cell"]["strategy"],
    }


@command_line.script
def main(record: Path, strategy: str, output: Path) -> None:
    RUN.write(output, as_strategy(RUN.read(record), strategy))
