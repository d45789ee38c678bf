"""Training runs of the real script on a few images, with faults on request."""

import json
import os
import sys
from pathlib import Path

import numpy as np

import train_run
from scaling.core.environment import visible_gpus
from scaling.core.grid import Cell
from scaling.data.dataset import ImageDataset
from scaling.launch import supervisor
from scaling.launch.run_spec import RunSpec

DEVICE = "cuda" if visible_gpus() else "cpu"
INTERPRET = {} if DEVICE == "cuda" else {"TRITON_INTERPRET": "1"}
"""Triton reads this variable when it is imported, sees a kernel, or runs one. Torchvision imports
it."""
ROOT = Path(__file__).parents[1]
CELL = {"recipe": "plain", "strategy": "ddp", "gpus": 1, "batch_size": 10, "seed": 0}
SWITCHES = {"compile": False, "cuda_graph": False, "fused_norms": False, "channels_last": True}
"""Options of recipe `tuned`, as on a CPU."""
KILLED = {rank: f"rank {rank} ended without a word after 1 epoch.*no record" for rank in (0, 1)}
"""What the error of a run says, on a CPU and on GPUs, if a rank was killed in epoch 2."""


def tuned(**options):
    """Return arguments of a run: recipe `tuned`, changed by `options`."""
    told = {"precision": "bf16", **SWITCHES, **options}
    return {"recipe": "tuned", "engine": "resident", "recipe_options": told}


def dark_and_light():
    """Return 40 training and 10 test images of two classes."""
    random = np.random.default_rng(0)

    def split(count):
        labels = np.arange(count) % 2
        pixels = random.integers(0, 128, (count, 32, 32, 3)) + 100 * labels[:, None, None, None]
        return pixels.astype(np.uint8), labels.astype(np.int64)

    return ImageDataset(*split(40), *split(10), classes=["dark", "light"])


def spec_of(**changed):
    """Return the `RunSpec` of the smallest model, with changed fields of its cell or itself."""
    given = {key.replace("-", "_"): value for key, value in changed.items()}
    cell = {key: given.pop(key, usual) for key, usual in CELL.items()}
    model = {"name": given.pop("model", "resnet18-cifar"), "width": 1}
    model["options"] = given.pop("model_options", {})
    usual = {"device": "cpu", "recipe_options": {"loader_workers": 1}}
    return RunSpec.of({**usual, **given, "cell": Cell(**cell), "model": model}).resolved()


def run(images, output, **changed):
    places = {"images": images / "images.npz", "manifest": images / "manifest.json"}
    train_run.main(spec=spec_of(**changed).model_dump(), output=output, **places)
    return json.loads(output.read_text())


def supervise_faulty(images, output, monkeypatch, fault, **changed):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "tests"), *sys.path]))
    places = images / "images.npz", images / "manifest.json", output
    return supervisor.supervise(spec_of(gpus=2, **changed), *places, worker="faulty_worker:start")


def in_ranks(function, *arguments, count=2):
    """Call `function(rank, *arguments)` in forked processes or, with a GPU, in new processes."""
    from torch.multiprocessing import start_processes

    start_processes(function, arguments, count, start_method="fork" if DEVICE == "cpu" else "spawn")
