"""Write a trained network and its integer copies as ONNX files, and run them by ONNX Runtime.

Beside the record of what they find and take on the CPU. Integer logits are compared in steps.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from scaling.config.devices import cores
from scaling.core import environment
from scaling.core.errors import program
from scaling.core.records.quantization import EXPORT
from scaling.data.batches import Images, read_images
from scaling.launch import lease
from scaling.quantization import commands, export
from scaling.quantization.backend_engines import Run, onnxruntime_run
from scaling.quantization.backends import compared, interleaved_seconds
from scaling.quantization.commands import Evaluation

BATCHES = (1, 16)
ROUND_SECONDS = 0.03
TELLING = r"\b(?:avx2|avx512f|\w*vnni|amx\w*)\b"
"""The flags of a processor that decide how fast int8 is."""


@program
def main(argv: list[str] | None = None) -> None:
    command: Evaluation = commands.parse("evaluation", argv)
    host_info = environment.describe("cpu")
    training, test, identity = read_images(command.dataset, command.manifest, torch.device("cpu"))
    chosen = training.sample(command.calibration_images, command.seed)
    networks = command.networks(chosen, test)
    logits = {name: computed(network, test) for name, network in networks.items()}
    models, found = {}, {}
    for name, network in networks.items():
        models[name], scale = export.model(network)
        path = command.output.with_name(f"{command.model}-{name}.onnx")
        path.write_bytes(models[name])
        theirs = computed(onnxruntime_run(models[name], cores()), test)
        ours = {"float32": logits["float32"].argmax(axis=1), "int8": logits[name].argmax(axis=1)}
        picked = theirs.argmax(axis=1)
        apart = np.abs(np.rint(theirs * scale) - logits[name])
        steps = {"differing_logits": int((apart > 0).sum()), "largest_steps": int(apart.max())}
        found[name] = {
            "file_bytes": path.stat().st_size,
            **compared(picked, test, ours),
            "differing_classes": int((picked != ours["int8"]).sum()),
            **({"logits": apart.size, **steps} if name != "float32" else {}),
        }
        print(f"{name}: {found[name]}", flush=True)
    with lease.cpu():
        seconds = timed(models, test)
    for name, figures in found.items():
        figures["seconds"] = {key: each[name] for key, each in seconds.items()}
    flags = re.findall(TELLING, Path("/proc/cpuinfo").read_text().partition("\n\n")[0])
    record = {
        "seed": command.seed,
        "model": command.model,
        "dataset": identity,
        "calibration_images": len(chosen),
        "all_threads": cores(),
        "instructions": sorted(flags),
        "versions": {key: environment.installed(key) for key in ("onnx", "onnxruntime")},
        "networks": found,
        "environment": {**host_info, "ended": environment.now()},
    }
    EXPORT.write(command.output, record)


@torch.no_grad()
def computed(run: nn.Module | Run, test: Images) -> np.ndarray[Any, Any]:
    """Compute the logits of all test images: float64 [n, classes]."""
    return torch.cat([run(batch).double() for batch in test.batches()]).numpy()


def timed(models: dict[str, bytes], test: Images) -> dict[str, dict[str, list[float]]]:
    """Time the networks in turns, by batch and threads: seconds of a call, one for each round."""
    found = {}
    for words, threads in (("one_core", 1), ("all_cores", cores())):
        runs = {name: onnxruntime_run(model, threads) for name, model in models.items()}
        for batch in BATCHES:
            images = test.normalised(np.arange(batch) % len(test))
            found[f"{batch}_{words}"] = interleaved_seconds(runs, images, ROUND_SECONDS)
    return found
