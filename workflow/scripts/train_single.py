"""Write a strategy's record of a single-GPU run from the one measured for another strategy.

On one GPU all strategies are the same process: measuring it twice would give two baselines that
differ by noise.
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.records.run import RUN


@command_line.script
def main(record: Path, strategy: str, output: Path) -> None:
    """`measured_as` is the strategy that was measured."""
    run = RUN.read(record)
    run["measured_as"] = run["cell"]["strategy"]
    run["cell"] |= {"strategy": strategy}
    RUN.write(output, run)
