"""Export a trained network and its integer versions to ONNX; run and time them on the CPU."""

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from extras.bits import export
from extras.bits.engines import (
    compared,
    computed,
    instructions,
    interleaved_seconds,
    onnxruntime_run,
)
from scaling.config.devices import cores
from scaling.core import environment
from scaling.core.errors import program
from scaling.core.paired_accuracy import Classes
from scaling.core.records.quantization import EXPORT
from scaling.data.batches import Images, read_images
from scaling.launch import lease
from scaling.quantization import commands
from scaling.quantization.commands import Evaluation
from scaling.quantization.network import in_integers
from scaling.quantization.training import predict

BATCHES, THREADS, ROUND_SECONDS = (1, 16), {"one_core": 1, "all_cores": cores()}, 0.03


def exported(
    make: Callable[[], nn.Module], path: Path, test: Images, float32: Classes
) -> dict[str, Any]:
    """Make a network, write it to `path`, and compare what ONNX Runtime and we compute of it."""
    network = make()
    model, scale = export.model(network)
    path.write_bytes(model)
    of_integers = hasattr(network, "quantize")
    ours = computed(partial(in_integers, network) if of_integers else network, test)
    theirs = computed(onnxruntime_run(model, cores()), test)
    own, picked = ours.argmax(axis=1), theirs.argmax(axis=1)
    found = compared(picked, test, {"float32": float32, "int8": own})
    found |= {"differing_classes": int((picked != own).sum()), "file_bytes": len(model)}
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
    with lease.cpu():
        for (words, threads), batch in product(THREADS.items(), BATCHES):
            images = test.normalised(np.arange(batch) % len(test))
            runs = {
                name: onnxruntime_run(path.read_bytes(), threads) for name, path in paths.items()
            }
            for name, seconds in interleaved_seconds(runs, images, ROUND_SECONDS).items():
                found[name].setdefault("seconds", {})[f"{batch}_{words}"] = seconds
    record = {
        **{"seed": command.seed, "model": command.model, "dataset": identity},
        **{"calibration_images": len(chosen), "all_threads": cores()},
        "instructions": instructions(),
        "versions": {key: environment.installed(key) for key in ("onnx", "onnxruntime")},
        "networks": found,
        "environment": {**host_info, "ended": environment.now()},
    }
    EXPORT.write(command.output, record | ({"left_out": left_out} if left_out else {}))
