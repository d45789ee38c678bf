"""Train a large-batch technique at one global batch, and write its record.

One process trains all runs on one device. It splits each global batch into micro-batches: one for
each GPU that would share the global batch.
"""

from pathlib import Path
from typing import Any

import torch

from scaling.config.devices import need_newer_gpu
from scaling.core import code_digest, command_line, environment
from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET
from scaling.core.records.run import TECHNIQUE
from scaling.data import dataset as data
from scaling.large_batches.experiment import Experiment
from scaling.large_batches.plan import Study
from scaling.launch import lease
from scaling.registry.update_rule import Technique


@command_line.script
def main(
    study: Study,
    remedy: str,
    technique: Technique,
    global_batch: int,
    images: Path,
    manifest: Path,
    output: Path,
    device: Device = "auto",
    cpu_threads: int = 1,
) -> None:
    """Train technique `remedy` with options `technique` and the shared `study`; write `output`."""
    kind = environment.resolve_device(device)
    for problem in need_newer_gpu(kind, {"*": study.model_dump()}):
        raise UserError(problem)
    torch.set_num_threads(cpu_threads)
    dataset = data.read(images, manifest, study.train_images)
    described = DATASET.read(manifest)
    facts = {key: described[key] for key in ("source", "checksum", "train_images", "test_images")}
    precision: Any = environment.applied_precision(study.precision, kind)
    study = study.model_copy(update={"precision": precision})
    # The images are there before a GPU is leased, which the next job can have at once.
    with lease.device(kind) as leased:
        code = code_digest.described(Experiment.__module__)
        host_info = environment.describe_process(leased) | code
        document: Any = {
            "remedy": remedy,
            "global_batch": global_batch,
            "options": technique.model_dump(),
            "training": study.model_dump(),
            "dataset": facts,
            **Experiment(study, dataset, global_batch, leased).outcome(remedy, technique),
            "environment": host_info | {"ended": environment.now()},
        }
        TECHNIQUE.write(output, document)
