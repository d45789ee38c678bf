"""The files that a finished study leaves, made by hand, for tests."""

import copy
import json
from pathlib import Path
from typing import Any

import yaml

from examples import manifests, records
from scaling.core import grid

CONFIG: dict[str, Any] = {
    "study": "mine",
    "partial": False,
    "dataset": {"source": "digits"},
    "model": {"width": 64},
    "grid": {
        "recipes": ["plain"],
        "strategies": ["ddp"],
        "gpus": [1, 2],
        "batch_sizes": [128],
        "seeds": [0],
    },
    "training": {"learning_rate": 0.1, "measured_epochs": 3},
    "recipes": {"plain": {"engine": "eager", "loader_workers": 2}},
    "machine": {"share": False, "cpu_threads": 1, "gpus_per_node": None, "check": "off"},
    "convergence": {"recipes": [], "global_batches": []},
    "time_to_accuracy": {"gpus": []},
    "synchronization": {"seeds": [0, 1, 2]},
    "quantization": {
        "seeds": [0],
        "variants": [{"name": "weights", "activation_bits": None}],
        "resnet18": False,
    },
}
CHECKSUM = "fae71f"
RECORDS = [
    "experiments/gpus~2/synchronization.json",
    "interconnect/gpus~2/sweep.json",
    "peaks/peaks.json",
    "quantization/seed~0/variant~weights/quantization.json",
    "runs/recipe~plain/strategy~ddp/gpus~1/batch_size~128/seed~0/run.json",
    "runs/recipe~plain/strategy~ddp/gpus~2/batch_size~128/seed~0/run.json",
]
FILES = sorted(["config.yaml", "manifest.json", *RECORDS])
"""All of a stored study."""


def make(folder: Path, **changes: Any) -> None:
    """Write results/ and resources/ of `CONFIG`, its top keys changed, below `folder`."""
    config = copy.deepcopy(CONFIG) | changes
    results = folder / "results"
    for cell in grid.of(config):
        made = records.record(cell, records.epochs(cell, 2.5, 2.5, 2.5))
        made["dataset"]["checksum"] = CHECKSUM
        records.save(results / "runs", made)
    others = {
        results / "experiments/gpus~2/synchronization.json": {"gpus": 2},
        results / "interconnect/gpus~2/sweep.json": {"gpus": 2},
        results / "quantization/seed~0/variant~weights/quantization.json": {"seed": 0},
        results / "quantization/seed~0/training.json": {"epochs": 1},
        results / "peaks/peaks.json": {"device": "cpu"},
    }
    for path, document in others.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    manifests.write(folder / "resources/dataset/digits", checksum=CHECKSUM)
    (results / "quantization/seed~0/float32.pt").write_bytes(b"weights")
    (results / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def stored(folder: Path) -> list[str]:
    """The files in `folder`, hidden ones too, in order."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in paths)
