"""The runs of one process: takes a device, trains remedy after remedy, writes their records."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scaling.convergence import record
from scaling.convergence.engine import Engine
from scaling.convergence.experiment import Experiment
from scaling.convergence.plan import Study
from scaling.convergence.remedy import Remedy
from scaling.core import environment, files
from scaling.data import dataset
from scaling.launch import gpu_lease, outcome
from scaling.training.run_spec import Device
from scaling.training.trainer import Material


@dataclass(frozen=True)
class Session:
    """What one process is to do; with `keep` records that exist are left alone."""

    study: Study
    remedies: dict[str, Remedy]
    global_batches: list[int]
    device: Device
    cpu_threads: int
    keep: bool


def run(session: Session, images: Path, manifest: Path, records: Path) -> None:
    """Write a record below `records` for every global batch and remedy, as they are done.

    The images are read before a GPU is taken: who waits for one has it ready then.
    """
    torch.set_num_threads(session.cpu_threads)
    statistics = files.read_json(manifest)
    data, first = dataset.load(images), slice(session.study.train_images)
    data = replace(
        data, train_images=data.train_images[first], train_labels=data.train_labels[first]
    )
    material = Material(data, np.array(statistics["mean"]), np.array(statistics["std"]))
    facts = {key: statistics[key] for key in ("source", "checksum", "train_images", "test_images")}
    with _device(session.device) as (device, surroundings):
        for global_batch in session.global_batches:
            wanted = {
                name: remedy
                for name, remedy in session.remedies.items()
                if not (session.keep and record.path(records, name, global_batch).exists())
            }
            for name, found in _records(session, wanted, global_batch, material, device):
                document = {
                    "remedy": name,
                    "global_batch": global_batch,
                    "options": asdict(session.remedies[name]),
                    "training": asdict(session.study),
                    "dataset": facts,
                    **found,
                    "environment": surroundings | {"ended": environment.now()},
                }
                files.write_json(record.path(records, name, global_batch), document)


@contextmanager
def _device(kind: Device) -> Iterator[tuple[torch.device, dict[str, Any]]]:
    """The device, held until the end, and where it is."""
    surroundings = environment.describe(kind)
    if kind == "cpu":
        yield torch.device("cpu"), surroundings
        return
    with gpu_lease.lease(1, environment.visible_gpus()) as names:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        versions = {"cuda": torch.version.cuda}
        yield torch.device("cuda", 0), surroundings | environment.leased_gpus(names) | versions


def _records(
    session: Session,
    remedies: dict[str, Remedy],
    global_batch: int,
    material: Material,
    device: torch.device,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each remedy's name and the part of its record that the runs decide.

    Where the device has no room for one remedy it has none for the others. Those with precise batch
    norms go first: their trainings then are those of the ones without as well.
    """
    train_images = len(material.data.train_labels)
    status, message = "ok", None
    if global_batch > train_images:
        status = "infeasible"
        message = f"the global batch is larger than the {train_images} training images"
    experiment: Experiment | None = None
    for name, remedy in sorted(remedies.items(), key=lambda item: not item[1].precise_batch_norm):
        result = None
        if status == "ok":
            try:
                experiment = experiment or Experiment(
                    Engine(session.study, material, global_batch, device), session.study
                )
                result = experiment.record(remedy, _reporter(name, global_batch))
            except Exception as error:
                lack = outcome.classify(error)
                if lack is None:
                    raise
                status, message = lack, outcome.first_sentence(error)
        yield name, {"status": status, "message": message, "result": result}


def _reporter(name: str, global_batch: int) -> Callable[[str], None]:
    return lambda text: print(f"{name}, global batch {global_batch}, {text}", flush=True)
