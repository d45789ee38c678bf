"""Write the record of a single-GPU run for one strategy from the one measured for another.

One GPU is one plain process whatever the strategy: measuring it twice would give every cell two
baselines that differ by noise.
"""

import argparse
from pathlib import Path

from scaling.core import files
from scaling.core.errors import run_script
from scaling.core.records import read_record
from scaling.core.shared_run import as_strategy
from scaling.registry.strategy import STRATEGIES


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True, help="run.json on one GPU")
    parser.add_argument(
        "--strategy", choices=STRATEGIES.names(), required=True, help="of the output"
    )
    parser.add_argument("--output", type=Path, required=True, help="the record to write")
    args = parser.parse_args(argv)
    files.write_json(args.output, as_strategy(read_record(args.record), args.strategy))


if __name__ == "__main__":
    run_script(main)
