"""Train one run of the grid and write its record, run.json.

It decides whether the cell can run, takes the GPUs, starts the processes (by torchrun on several
nodes), bounds their time and writes the record.

    python workflow/scripts/train_run.py --gpus 2 --batch-size 512 \\
        --dataset resources/dataset/digits/images.npz \\
        --manifest resources/dataset/digits/manifest.json --output run.json
"""

import argparse
import json
import sys
from pathlib import Path

from scaling.core import environment
from scaling.core.errors import UserError, run_script
from scaling.core.grid import Cell
from scaling.launch import launcher, supervisor, verdict
from scaling.launch.startup_clock import StartupClock
from scaling.registry.recipe import RECIPES
from scaling.registry.strategy import STRATEGIES
from scaling.training.run_spec import RunSpec


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--recipe", default="course", help=f"{', '.join(RECIPES.names())} (default: course)")
    add("--strategy", default="ddp", help=f"{', '.join(STRATEGIES.names())} (default: ddp)")
    add("--gpus", type=int, default=1, help="GPUs; on a CPU, processes (default: 1)")
    add("--nodes", type=int, default=1, help="of a Slurm job, that share the GPUs (default: 1)")
    add("--batch-size", type=int, default=128, help="samples per GPU and step (default: 128)")
    add("--seed", type=int, default=0, help="of initial weights, order, augmentation (default: 0)")
    add("--dataset", type=Path, required=True, help="images.npz, made by dataset_prepare.py")
    add("--manifest", type=Path, required=True, help="its manifest.json")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add("--model-width", type=int, default=64, help="channels of the first stage (default: 64)")
    add("--warmup-epochs", type=int, default=1, help="recorded, not averaged (default: 1)")
    add("--measured-epochs", type=int, default=3, help="default: 3")
    add("--instrumented-iterations", type=int, default=50, help="0: none (default: 50)")
    add("--learning-rate", type=float, default=0.1, help="default: 0.1")
    add("--momentum", type=float, default=0.9, help="default: 0.9")
    add("--weight-decay", type=float, default=5e-4, help="default: 5e-4")
    add("--crop-padding", type=int, default=4, help="pixels around a random crop (default: 4)")
    add("--horizontal-flip", type=_yes_no, default=True, help="yes or no (default: yes)")
    add("--recipe-options", type=json.loads, default={"loader_workers": 2}, help="JSON")
    add("--cpu-threads", type=int, default=1, help="threads of each process (default: 1)")
    add("--time-limit-seconds", type=float, default=3600, help="of the run (default: 3600)")
    add("--collective-timeout-seconds", type=float, default=300, help="default: 300")
    add("--output", type=Path, required=True, help="the record to write")
    return parser.parse_args(argv)


def _yes_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"


def spec_from(args: argparse.Namespace) -> RunSpec:
    device = environment.resolve_device(args.device)
    RECIPES.find(args.recipe)
    if STRATEGIES.find(args.strategy).needs_gpu and args.gpus > 1 and device == "cpu":
        raise UserError(
            f"strategy {args.strategy} on several GPUs needs CUDA devices: use ddp on a CPU"
        )
    return RunSpec(
        cell=Cell(args.recipe, args.strategy, args.gpus, args.batch_size, args.seed),
        device=device,
        model_width=args.model_width,
        warmup_epochs=args.warmup_epochs,
        measured_epochs=args.measured_epochs,
        instrumented_iterations=args.instrumented_iterations,
        learning_rate=args.learning_rate,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
        crop_padding=args.crop_padding,
        horizontal_flip=args.horizontal_flip,
        recipe_options=args.recipe_options,
        cpu_threads=args.cpu_threads,
        time_limit_seconds=args.time_limit_seconds,
        collective_timeout_seconds=args.collective_timeout_seconds,
        nodes=args.nodes,
    )


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    spec = spec_from(args)
    ranks_folder = launcher.worker_folder()
    if ranks_folder is not None:
        clock = StartupClock(launcher.started())
        clock.end("launch")
        from scaling.launch import ranks
        from scaling.training import worker

        worker.load(spec)
        clock.end("imports")
        job = (spec, args.dataset, args.manifest, ranks_folder, clock)
        ranks.start(verdict.processes(spec), worker.run, *job)
        return
    if launcher.under_torchrun():
        raise UserError("start train_run.py with python: it starts its processes itself")
    arguments = sys.argv[1:] if argv is None else argv
    command = launcher.command(Path(__file__), arguments, verdict.processes(spec), spec.nodes)
    record = supervisor.supervise(spec, args.manifest, args.output, command)
    print(supervisor.summary(record))


if __name__ == "__main__":
    run_script(main)
