"""Export a trained network and its integer versions to ONNX; run and time them on the CPU."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import nn

from extras.bits import export
from extras.bits.comparison import compared, interleaved_seconds
from extras.bits.engines import Run, instructions, onnxruntime_run
from scaling.config.devices import cores
from scaling.core import environment
from scaling.core.errors import program
from scaling.core.records.quantization import EXPORT
from scaling.data.batches import Images, read_images
from scaling.launch import lease
from scaling.quantization import commands
from scaling.quantization.commands import Evaluation
from scaling.quantization.network import in_integers
from scaling.quantization.training import predict

BATCHES, THREADS, ROUND_SECONDS = (1, 16), {"one_core": 1, "all_cores": cores()}, 0.03


@torch.no_grad()
def computed(network: nn.Module | Run, test: Images) -> np.ndarray[Any, Any]:
    """Return the logits of all test images: float64 [n, classes]."""
    return torch.cat([network(batch).double() for batch in test.batches()]).numpy()


@program
def main(argv: list[str] | None = None) -> None:
    command: Evaluation = commands.parse("evaluation", argv)
    host_info = environment.describe("cpu")
    training, test, identity = read_images(command.dataset, command.manifest, torch.device("cpu"))
    chosen = training.sample(command.calibration_images, command.seed)
    models, found, networks = {}, {}, command.networks(chosen, test)
    float32 = predict(networks["float32"], test)
    for name, network in networks.items():
        models[name], scale = export.model(network)
        path = command.output.with_name(f"{command.model}-{name}.onnx")
        path.write_bytes(models[name])
        ours = computed(network if name == "float32" else partial(in_integers, network), test)
        theirs = computed(onnxruntime_run(models[name], cores()), test)
        own, picked = ours.argmax(axis=1), theirs.argmax(axis=1)
        found[name] = compared(picked, test, {"float32": float32, "int8": own})
        found[name]["differing_classes"] = int((picked != own).sum())
        found[name]["file_bytes"] = path.stat().st_size
        if name != "float32":
            steps = np.abs(np.rint(theirs * scale) - ours)
            found[name] |= {"logits": steps.size, "largest_steps": int(steps.max())}
            found[name] |= {"differing_logits": int((steps > 0).sum())}
    with lease.cpu():
        for (words, threads), batch in product(THREADS.items(), BATCHES):
            images = test.normalised(np.arange(batch) % len(test))
            runs = {name: onnxruntime_run(model, threads) for name, model in models.items()}
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
    EXPORT.write(command.output, record)
