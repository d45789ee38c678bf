"""Trains the ResNet-18 that is quantized: the study's model, one recipe, one GPU.

The runs of the grid keep times and no weights, so this is a training of its own.
"""

from dataclasses import asdict
from typing import Any

import torch

from scaling.core.grid import Cell
from scaling.core.records.kind import DATASET
from scaling.core.training_options import Model, Sgd
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.resnet import ResNet18
from scaling.quantization.commands import Training, train_epochs
from scaling.registry.engine import ENGINES
from scaling.training import evaluation
from scaling.training.trainer import TrainingData


class ResNetTraining(Training, Sgd):
    """Train a ResNet-18 as a cell of the grid on one GPU."""

    model_width: int = 64
    """Channels of its first stage."""
    epochs: int
    """Passes over the training images."""
    batch_size: int
    """Images per update."""
    recipe: str
    """How it is trained: a recipe's name."""
    engine: str
    """The engine of that recipe."""
    recipe_options: dict[str, Any]
    """The engine's options in it."""

    def train(self, device: torch.device) -> tuple[ResNet18, dict[str, Any]]:
        spec = RunSpec(
            cell=Cell(self.recipe, "ddp", 1, self.batch_size, self.seed),
            device="cuda" if device.type == "cuda" else "cpu",
            warmup_epochs=0,
            measured_epochs=self.epochs,
            instrumented_iterations=0,
            cpu_threads=torch.get_num_threads(),
            model=Model(width=self.model_width),
            **self.model_dump(include={*Sgd.model_fields, "engine", "recipe_options"}),
        ).resolved()
        described = DATASET.read(self.manifest)
        images = TrainingData.read(self.dataset, self.manifest)
        torch.manual_seed(self.seed)
        network = ResNet18(self.model_width, len(images.data.classes)).to(device)
        made = ENGINES.find(self.engine).trainer.load()
        trainer = made(spec, Rank(0, 0, 1, device), network, images)
        epochs = train_epochs(
            self.epochs, self.learning_rate, lambda epoch: asdict(trainer.run_epoch(epoch))
        )
        about = self.model_dump(include={"recipe", "seed", "batch_size"})
        return network.eval(), {
            "training": spec.parameters() | about,
            "dataset": {key: described[key] for key in ("source", "checksum")},
            "epochs": epochs,
            "evaluation": evaluation.evaluate(network, images, device),
        }
