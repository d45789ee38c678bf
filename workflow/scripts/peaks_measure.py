"""Measure what this machine can do at best: matrix products by precision, and copies.

Each figure is measured several times after a warm-up, on random numbers. On a GPU: float32, TF32
and bf16, copies within the first GPU and between every two. On a CPU: float32, bf16 and copies
within the host's memory, by one process.
"""

import argparse
import sys
from pathlib import Path

from scaling.core import environment, files
from scaling.core.errors import run_script
from scaling.launch import launcher, peaks_record, supervisor


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--gpus", type=int, default=1, help="GPUs that take part; nothing on a CPU (default: 1)")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add("--matrix-sizes", type=int, nargs="+", required=True, help="n of each n×n matrix product")
    add("--copy-bytes", type=int, required=True, help="size of each copy")
    add("--repeats", type=int, default=10, help="timed repeats of each figure (default: 10)")
    add("--cpu-threads", type=int, default=1, help="threads of the process (default: 1)")
    add("--time-limit-seconds", type=float, default=600, help="of it all (default: 600)")
    add("--output", type=Path, required=True, help="peaks.json")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    device = environment.resolve_device(args.device)
    log_folder = launcher.worker_folder()
    if log_folder is not None:
        from scaling.instruments import peaks

        probe = peaks.Probe(
            device, args.matrix_sizes, args.copy_bytes, args.repeats, args.cpu_threads
        )
        peaks.run(probe, log_folder)
        return
    surroundings = environment.describe(device)
    arguments = sys.argv[1:] if argv is None else argv
    ending, lines = supervisor.launch_ranks(
        launcher.command(Path(__file__), arguments, processes=1),
        args.output,
        device,
        args.gpus,
        args.cpu_threads,
        args.time_limit_seconds,
    )
    document = peaks_record.assemble(args.cpu_threads, surroundings, lines, ending)
    files.write_json(args.output, document)


if __name__ == "__main__":
    run_script(main)
