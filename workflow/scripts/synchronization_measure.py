"""Measure what the ranks of one training share: image orders, messages, buffers.

Image orders: those of DistributedSampler with and without set_epoch, and trainings both ways.
Messages: every collective of a training step of DDP, of recipe tuned and, on GPUs, of DataParallel.
Buffers: trainings with running statistics broadcast, kept by each rank and, on GPUs, synchronized.
"""

import argparse
import json
import sys
from pathlib import Path

from scaling.core import environment, files
from scaling.core.errors import UserError, run_script
from scaling.core.grid import Cell
from scaling.launch import launcher, supervisor, synchronization_record
from scaling.launch.run_spec import RunSpec
from scaling.synchronization.plan import Plan


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--gpus", type=int, default=2, help="GPUs, 2 or more; on a CPU, processes (default: 2)")
    add("--world-sizes", type=int, nargs="*", default=[], help="others whose orders are drawn")
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the trainings (default: 0 1 2)")
    add("--epochs", type=int, default=5, help="of each training, 2 or more (default: 5)")
    add("--batch-size", type=int, default=256, help="samples per GPU and step (default: 256)")
    add("--dataset", type=Path, required=True, help="images.npz, made by dataset_prepare.py")
    add("--manifest", type=Path, required=True, help="its manifest.json")
    add("--train-images", type=int, help="how many are trained on, the first ones (default: all)")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add("--model-width", type=int, default=64, help="channels of the first stage (default: 64)")
    add("--learning-rate", type=float, default=0.1, help="default: 0.1")
    add("--momentum", type=float, default=0.9, help="default: 0.9")
    add("--weight-decay", type=float, default=5e-4, help="default: 5e-4")
    add("--crop-padding", type=int, default=4, help="pixels around a random crop (default: 4)")
    add("--horizontal-flip", choices=["yes", "no"], default="yes", help="default: yes")
    add("--loader-workers", type=int, default=2, help="of each process (default: 2)")
    add("--tuned-options", type=json.loads, required=True, help="JSON")
    add("--cpu-threads", type=int, default=1, help="threads of each process (default: 1)")
    add("--time-limit-seconds", type=float, default=1800, help="of it all (default: 1800)")
    add("--collective-timeout-seconds", type=float, default=300, help="default: 300")
    add("--output", type=Path, required=True, help="the record to write")
    return parser.parse_args(argv)


def plan_from(args: argparse.Namespace) -> Plan:
    if args.gpus < 2:
        raise UserError(f"--gpus is {args.gpus}: ranks can be compared where there are 2 or more")
    spec = RunSpec(
        cell=Cell("course", "ddp", args.gpus, args.batch_size, args.seeds[0]),
        device=environment.resolve_device(args.device),
        model_width=args.model_width,
        warmup_epochs=1,
        measured_epochs=args.epochs - 1,
        instrumented_iterations=0,
        learning_rate=args.learning_rate,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
        crop_padding=args.crop_padding,
        horizontal_flip=args.horizontal_flip == "yes",
        recipe_options={"loader_workers": args.loader_workers},
        cpu_threads=args.cpu_threads,
        time_limit_seconds=args.time_limit_seconds,
        collective_timeout_seconds=args.collective_timeout_seconds,
    )
    world_sizes = sorted({args.gpus, *args.world_sizes} - {1})
    there = files.read_json(args.manifest)["train_images"]
    train_images = min(there, args.train_images or there)
    return Plan(spec, args.seeds, world_sizes, train_images, args.tuned_options)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    plan = plan_from(args)
    spec = plan.spec
    log_folder = launcher.worker_folder()
    if log_folder is not None:
        from scaling.launch import ranks
        from scaling.synchronization import worker

        job = (plan, args.dataset, args.manifest, log_folder)
        ranks.start(spec.cell.gpus, worker.run, *job)
        if spec.device == "cuda":
            worker.run_data_parallel(*job)
        return
    reason = supervisor.infeasible_reason(spec, plan.train_images)
    if reason:
        raise UserError(f"{reason}: set synchronization.batch_size to a smaller value")
    surroundings = environment.describe(spec.device)
    arguments = sys.argv[1:] if argv is None else argv
    ending, lines = supervisor.launch_ranks(
        launcher.command(Path(__file__), arguments, spec.cell.gpus),
        args.output,
        spec.device,
        spec.cell.gpus,
        spec.cpu_threads,
        spec.time_limit_seconds,
    )
    document = synchronization_record.assemble(plan, surroundings, lines, ending)
    files.write_json(args.output, document)


if __name__ == "__main__":
    run_script(main)
