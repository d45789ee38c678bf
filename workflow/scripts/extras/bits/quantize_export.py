"""Export a trained network and its integer versions to ONNX; run and time them by ONNX Runtime."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from extras.bits import export
from scaling.config.devices import cores
from scaling.core import environment
from scaling.core.errors import program
from scaling.core.paired_accuracy import Classes, paired
from scaling.core.records.quantization import EXPORT
from scaling.data.batches import Images, predict, read_images
from scaling.launch import lease
from scaling.quantization import commands
from scaling.quantization.commands import Evaluation
from scaling.quantization.network import in_integers

Run = Callable[[Tensor], Tensor]
"""Normalised images, float32 [n, 3, 32, 32] on the CPU, to logits, float32 [n, classes]."""
BATCHES, ROUNDS, ROUND_SECONDS = (1, 16), 15, 0.03
"""Each round times every network once, by calls for about this long; ratios are by round."""


def instructions() -> str:
    """The flags of an x86 processor that decide how fast int8 is, and by which kernels."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    return " ".join(sorted(re.findall(r"\b(?:avx2|avx512f|\w*vnni|amx\w*)\b", first)))


def onnxruntime_run(model: bytes, threads: int) -> Run:
    """Make the run of an ONNX model with inputs `images` on so many threads.

    On x86 without VNNI the default int8 kernels add products in 16 bits, which clip; those of the
    option x64quantprecision are right. Threads do not spin after a call, so that networks timed in
    turns leave one another the cores.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    precise = "0" if "vnni" in instructions() else "1"
    options.add_session_config_entry("session.x64quantprecision", precise)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


def interleaved_seconds(runs: dict[str, Run], images: Tensor) -> dict[str, list[float]]:
    """Time each of `runs` on `images`: seconds per call, one figure per round.

    In each round every one of them has its turn, after calls that are not timed, so that a machine
    that becomes slower does so for all.
    """
    timers = {
        name: Timer("run(images)", globals={"run": run, "images": images})
        for name, run in runs.items()
    }
    calls = {
        name: max(1, round(ROUND_SECONDS / timer.timeit(1).mean)) for name, timer in timers.items()
    }
    rounds = [
        {name: timer.timeit(calls[name]).mean for name, timer in timers.items()}
        for _ in range(ROUNDS)
    ]
    return {name: [seconds[name] for seconds in rounds] for name in runs}


@torch.no_grad()
def exported(
    make: Callable[[], nn.Module], path: Path, test: Images, float32: Classes
) -> dict[str, Any]:
    """Make a network, write it to `path`, and compare what ONNX Runtime and we compute of it."""
    network = make()
    model, scale = export.model(network)
    path.write_bytes(model)
    of_integers = hasattr(network, "quantize")
    ours, theirs = (
        torch.cat([run(batch).double() for batch in test.batches()]).numpy()
        for run in (
            partial(in_integers, network) if of_integers else network,
            onnxruntime_run(model, cores()),
        )
    )
    picked = theirs.argmax(axis=1)
    found = paired(test.labels, float32, picked)
    found |= {"differing_classes": int((picked != ours.argmax(axis=1)).sum())}
    found |= {"file_bytes": len(model)}
    if of_integers:
        steps = np.abs(np.rint(theirs * scale) - ours)
        found |= {"logits": steps.size, "largest_steps": int(steps.max())}
        found["differing_logits"] = int((steps > 0).sum())
    return found


@program
def main(argv: list[str] | None = None) -> None:
    command: Evaluation = commands.parse("evaluation", argv)
    host_info = environment.describe("cpu")
    training, test, identity = read_images(command.dataset, command.manifest, torch.device("cpu"))
    chosen = training.sample(command.calibration_images, command.seed)
    made, left_out = command.networks(chosen, test), []
    found: dict[str, dict[str, Any]] = {}
    float32 = predict(made["float32"](), test)
    paths = {name: command.output.with_name(f"{command.model}-{name}.onnx") for name in made}
    for name, make in made.items():
        one = commands.attempted(partial(exported, make, paths[name], test, float32))
        if isinstance(one, dict):
            found[name] = one
        else:
            # The rule wants a file of each.
            paths.pop(name).write_bytes(b"")
            left_out.append({"stage": f"{name}.onnx", "reason": one})
    runs = {name: onnxruntime_run(path.read_bytes(), 1) for name, path in paths.items()}
    with lease.cpu():
        for batch in BATCHES:
            images = test.normalised(np.arange(batch) % len(test))
            for name, seconds in interleaved_seconds(runs, images).items():
                found[name].setdefault("seconds", {})[str(batch)] = seconds
    record = {
        **{"seed": command.seed, "model": command.model, "dataset": identity},
        "calibration_images": len(chosen),
        "instructions": instructions(),
        "versions": {key: environment.installed(key) for key in ("onnx", "onnxruntime")},
        "networks": found,
        "environment": {**host_info, "ended": environment.now()},
    }
    EXPORT.write(command.output, record | ({"left_out": left_out} if left_out else {}))
