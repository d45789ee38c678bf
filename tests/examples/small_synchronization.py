"""The synchronization experiments on a few images, by the real script."""

import json
import shlex

import synchronization_measure
from scaling.core.command_line import options

OPTIONS = {
    "gpus": 2,
    "epochs": 2,
    "batch_size": 10,
    "model_width": 1,
    "device": "cpu",
    "loader_workers": 0,
    "seeds": [0, 1, 2],
}


def measure(folder, output, **changed):
    """The record that the script writes to `output` of the images in `folder`."""
    data = {"dataset": folder / "images.npz", "manifest": folder / "manifest.json"}
    words = options({**OPTIONS, **data, "output": output, **changed})
    synchronization_measure.main(shlex.split(words))
    return json.loads(output.read_text())
