"""Write the list of runs that the study's grid asks for, cells.csv."""

import argparse
from pathlib import Path

from scaling.core import grid
from scaling.core.errors import run_script


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--recipes", nargs="+", required=True, help="how to train")
    add("--strategies", nargs="+", required=True, help="dp, ddp or both")
    add("--gpus", type=int, nargs="+", required=True, help="numbers of GPUs")
    add("--batch-sizes", type=int, nargs="+", required=True, help="samples per GPU and step")
    add("--seeds", type=int, nargs="+", required=True, help="one repeat of each cell per seed")
    add("--output", type=Path, required=True, help="cells.csv")
    args = parser.parse_args(argv)
    runs = grid.expand(args.recipes, args.strategies, args.gpus, args.batch_sizes, args.seeds)
    grid.write_table(runs, args.output)


if __name__ == "__main__":
    run_script(main)
