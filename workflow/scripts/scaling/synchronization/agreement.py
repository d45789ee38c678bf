"""Whether strategies train the same model: parameters after equal steps from equal weights."""

from typing import Any

import torch
from torch import Tensor

from scaling.launch.ranks import Rank
from scaling.synchronization import training
from scaling.synchronization.plan import Plan
from scaling.training.course import Course
from scaling.training.evaluation import whole
from scaling.training.trainer import TrainingData

STEPS = 10
STRATEGIES = ["ddp", "ddp", "fsdp", "zero1"]
"""The first is what the others are compared with; again, it shows what rounding alone does."""


def distances(plan: Plan, rank: Rank, dataset: TrainingData) -> list[dict[str, Any]]:
    """Train with each strategy; a row for each but the first, the same on every rank.

    `distance` is that of its parameters from the first one's, both after `steps` steps of recipe
    course, in lengths of the way that the first one's went (2-norms over all parameters).
    """
    rows: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        spec = plan.spec_of("course", strategy, plan.seeds[0])
        model = training.fresh(spec, rank, dataset)
        start = _flat(whole(model.parameters()))
        train = Course(spec, rank, model, dataset).in_memory(STEPS)
        iterations = train(STEPS).iterations
        end = _flat(whole(model.parameters()))
        if not rows:
            first, way = end, torch.linalg.vector_norm(end - start)
        distance = torch.linalg.vector_norm(end - first) / way
        rows.append({"strategy": strategy, "steps": iterations, "distance": distance.item()})
    return rows[1:]


def _flat(parameters: list[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().double().cpu().flatten() for parameter in parameters])
