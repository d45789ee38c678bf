"""Trainings of a small network at one global batch by the emulation of several GPUs."""

from dataclasses import replace

import torch

from examples import ddp_training as real
from scaling.config.technique import Technique
from scaling.convergence.engine import Engine
from scaling.convergence.plan import Run, Study
from scaling.training.trainer import TrainingData

STUDY = Study(
    reference_batch=8,
    gpus=real.GPUS,
    epochs=real.EPOCHS,
    max_epochs=real.EPOCHS,
    seeds=(real.SEED,),
    momentum=real.MOMENTUM,
    weight_decay=real.WEIGHT_DECAY,
    crop_padding=real.PADDING,
    model_width=real.WIDTH,
)
RATES = tuple(real.RATES)
RUN = Run(real.SEED, real.EPOCHS, RATES, RATES, real.MOMENTUM, Technique())


def with_options(**options):
    return replace(RUN, technique=Technique(**options))


def engine(study=STUDY, device="cpu", global_batch=real.GLOBAL_BATCH):
    dataset = TrainingData(real.images(), real.MEAN, real.STD)
    return Engine(study, dataset, global_batch, torch.device(device))


def trained(run, made):
    """The model's state after the run, and its epochs."""
    made.start(run)
    epochs = [made.train_epoch(run, number) for number in range(1, run.epochs + 1)]
    return {name: value.clone() for name, value in made.model.state_dict().items()}, epochs


def distance(first, second):
    return max(float((first[name].float() - second[name].float()).abs().max()) for name in first)
