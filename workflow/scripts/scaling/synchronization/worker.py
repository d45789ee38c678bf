"""One process of the synchronization experiments: joins the others, trains, and reports."""

import os
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scaling.core import files
from scaling.data import dataset
from scaling.launch import launcher, ranks
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.models.resnet import ResNet18
from scaling.synchronization import buffer_seconds, samplers, steps, training
from scaling.synchronization.plan import Plan
from scaling.training.trainer import Material


def run(plan: Plan, images: Path, manifest: Path, log_folder: Path) -> None:
    """Do what takes a process for each GPU; rank 0 reports to `log_folder`.

    Any error ends the process with status 1, so that the launcher ends the other ranks.
    """
    launcher.die_with_parent()
    log = RankLog(log_folder, int(os.environ["RANK"]))
    try:
        rank = _join(plan)
        log.append("start", ranks.versions(plan.spec.device))
        material = _material(plan, images, manifest)
        if rank.is_first:
            log.append("model", _model_bytes(plan, material))
            for drawn in _permutations(plan, material):
                log.append("permutations", drawn)
        for one in plan.trainings:
            spec = plan.spec_of("course", "ddp", one.seed)
            _report(log, rank, "training", training.run(spec, one, rank, material))
        rows = buffer_seconds.measure(plan, rank, material)
        if rank.is_first:
            log.append("buffer_seconds", {"rows": rows})
        # After the trainings: recipe tuned sets precision and algorithms for the whole process.
        for way in steps.OF_RANKS:
            if way.buffers != "sync_batch_norm" or rank.device.type == "cuda":
                _report(log, rank, "steps", steps.record(plan, way, rank, material))
        rank.barrier()
        log.append("end", {})
        ranks.leave(rank)
    except Exception:
        traceback.print_exc()
        os._exit(1)


def run_data_parallel(plan: Plan, images: Path, manifest: Path, log_folder: Path) -> None:
    """Do what takes one process with all GPUs: record DataParallel's steps."""
    log = RankLog(log_folder, 0)
    rank = _join(plan)
    material = _material(plan, images, manifest)
    _report(log, rank, "steps", steps.record(plan, steps.DATA_PARALLEL, rank, material))


def _join(plan: Plan) -> Rank:
    spec = plan.spec
    return ranks.join(spec.device, spec.cpu_threads, spec.collective_timeout_seconds)


def _material(plan: Plan, images: Path, manifest: Path) -> Material:
    statistics = files.read_json(manifest)
    data = dataset.load(images)
    first = slice(plan.train_images)
    data = replace(
        data, train_images=data.train_images[first], train_labels=data.train_labels[first]
    )
    return Material(data, np.array(statistics["mean"]), np.array(statistics["std"]))


def _model_bytes(plan: Plan, material: Material) -> dict[str, Any]:
    model = ResNet18(plan.spec.model_width, len(material.data.classes))
    return {
        "parameter_bytes": sum(map(_bytes, model.parameters())),
        "buffer_bytes": sum(map(_bytes, model.buffers())),
    }


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.itemsize


def _permutations(plan: Plan, material: Material) -> list[dict[str, Any]]:
    images = range(len(material.data.train_labels))
    seed, epochs = plan.seeds[0], plan.spec.epochs
    found: list[dict[str, Any]] = [
        {
            "sampler": "DistributedSampler",
            "gpus": gpus,
            "set_epoch": told,
            "orders": samplers.distributed(images, gpus, seed, epochs, told),
        }
        for gpus in plan.world_sizes
        for told in (True, False)
    ]
    alone = samplers.random(images, seed, epochs)
    found.append({"sampler": "RandomSampler", "gpus": 1, "set_epoch": False, "orders": alone})
    return [{"seed": seed, **drawn} for drawn in found]


def _report(log: RankLog, rank: Rank, kind: str, content: dict[str, Any]) -> None:
    if rank.is_first:
        log.append(kind, content)
        what = {"steps": "way", "training": "buffers"}[kind]
        print(f"{kind}: {content[what]}", flush=True)
