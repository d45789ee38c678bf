"""Training runs of the real script on a few images, with faults where a test asks for them."""

import json
import os
import sys
from pathlib import Path

import numpy as np

import train_run
from fused_kernels import DEVICE
from scaling.core import command_line
from scaling.core.records.kind import DATASET
from scaling.data import dataset
from scaling.data.dataset import ImageDataset
from scaling.launch import launcher, supervisor

ROOT = Path(__file__).parents[1]
FAULTY_WORKER = ROOT / "tests/faulty_worker.py"
SWITCHES = {"compile": False, "cuda_graph": False, "fused_norms": False, "channels_last": True}
"""Of recipe tuned, as on a CPU."""


def tuned(**options):
    """The arguments that ask for recipe tuned with these options."""
    told = {"precision": "bf16", **SWITCHES, **options}
    return {"recipe": "tuned", "engine": "resident", "recipe-options": json.dumps(told)}


def write_images(folder):
    """Forty training and ten test images of two classes, as images.npz and manifest.json."""
    random = np.random.default_rng(0)

    def split(count):
        labels = np.arange(count) % 2
        pixels = random.integers(0, 128, (count, 32, 32, 3)) + 100 * labels[:, None, None, None]
        return pixels.astype(np.uint8), labels.astype(np.int64)

    data = ImageDataset(*split(40), *split(10), classes=["dark", "light"])
    dataset.save(data, folder / "images.npz")
    DATASET.write(folder / "manifest.json", dataset.manifest(data, "images", "made for a test"))


def arguments(images, output, **changed):
    options = {
        "dataset": images / "images.npz",
        "manifest": images / "manifest.json",
        "output": output,
        "device": "cpu",
        "gpus": 1,
        "batch-size": 10,
        "model-width": 1,
        "recipe-options": json.dumps({"loader_workers": 1}),
        **changed,
    }
    return [text for key, value in options.items() for text in (f"--{key}", str(value))]


def run(images, output, **changed):
    train_run.main(arguments(images, output, **changed))
    return json.loads(output.read_text())


def spec_of(argv):
    return command_line.parse(train_run.Command, argv).run.resolved()


def supervise_faulty(images, output, monkeypatch, fault, **changed):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "workflow/scripts"), *sys.path]))
    argv = arguments(images, output, gpus=2, **changed)
    spec = spec_of(argv)
    command = launcher.command(FAULTY_WORKER, argv, spec.processes)
    return supervisor.supervise(spec, images / "manifest.json", output, command)


def in_ranks(function, *arguments, count=2):
    """Call `function(rank, *arguments)` in forks; in new processes where PyTorch sees a GPU."""
    from torch.multiprocessing import start_processes

    start_processes(function, arguments, count, start_method="fork" if DEVICE == "cpu" else "spawn")
