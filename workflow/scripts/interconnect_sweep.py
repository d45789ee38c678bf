"""Measure all-reduce between processes, of one machine or several, over message sizes.

Besides the sizes asked for it measures the gradients of the study's model as one message and each
of the buckets in which DistributedDataParallel and recipe tuned send them. Every sum is checked.
"""

import argparse
import sys
from pathlib import Path

from scaling.core import environment, files
from scaling.core.errors import run_script
from scaling.launch import launcher, supervisor, sweep_record


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--gpus", type=int, required=True, help="GPUs, 2 or more; on a CPU, processes")
    add("--nodes", type=int, default=1, help="of a Slurm job, that share the GPUs (default: 1)")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add("--message-bytes", type=int, nargs="+", required=True, help="sizes of the sweep")
    add("--model-width", type=int, default=64, help="of the model whose gradients are sent")
    add("--manifest", type=Path, required=True, help="the dataset's: its classes fix the model")
    add("--warmup", type=int, default=5, help="untimed repeats of each size (default: 5)")
    add("--repeats", type=int, default=20, help="timed repeats of each size (default: 20)")
    add("--iterations", type=int, default=10, help="all-reduces in a repeat (default: 10)")
    add("--time-limit-seconds", type=float, default=600, help="of the sweep (default: 600)")
    add("--output", type=Path, required=True, help="sweep.json")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    device = environment.resolve_device(args.device)
    ranks_folder = launcher.worker_folder()
    if ranks_folder is not None:
        from scaling.instruments import allreduce
        from scaling.launch import ranks

        classes = len(files.read_json(args.manifest)["classes"])
        sweep = allreduce.Sweep(
            device,
            args.message_bytes,
            args.model_width,
            classes,
            args.warmup,
            args.repeats,
            args.iterations,
            args.time_limit_seconds,
        )
        ranks.start(args.gpus, allreduce.run, sweep, ranks_folder)
        return
    surroundings = environment.describe(device)
    arguments = sys.argv[1:] if argv is None else argv
    command = launcher.command(Path(__file__), arguments, args.gpus, args.nodes)
    ending, lines = supervisor.launch_ranks(
        command,
        args.output,
        device,
        args.gpus // args.nodes,
        cpu_threads=1,
        time_limit=args.time_limit_seconds,
    )
    document = sweep_record.assemble(args.gpus, surroundings, lines, ending)
    files.write_json(args.output, document)


if __name__ == "__main__":
    run_script(main)
