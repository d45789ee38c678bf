"""What each kind of training is told of the configuration: options of its script."""

from typing import Any

from scaling.config.config import model_options
from scaling.core import grid

OF_ALL = ["learning_rate", "momentum", "weight_decay", "crop_padding", "horizontal_flip"]
NOT_OF_A_TRAINING = ["global_batches", "remedies", "accuracy_margin", "accuracies"]
"""Keys of the section `convergence` that no training depends on."""


def of_lab(config: dict[str, Any]) -> dict[str, Any]:
    """What every training of the lab's model is told."""
    shared = {key: config["training"][key] for key in OF_ALL}
    return {"device": config["device"], "model_width": config["model"]["width"], **shared}


def of_study(config: dict[str, Any]) -> dict[str, Any]:
    """What every training of the study's model is told."""
    return of_lab(config) | model_options(config)


def of_grid(config: dict[str, Any]) -> dict[str, Any]:
    """What a cell is told, besides the options of its recipe."""
    return config["training"] | of_study(config)


def to_accuracy(config: dict[str, Any]) -> dict[str, Any]:
    """What a training to its end is told: as many epochs as were chosen, none to settle."""
    full = config["time_to_accuracy"]
    return of_study(config) | {
        "warmup_epochs": 1,
        "measured_epochs": full["epochs"] - 1,
        "instrumented_iterations": 0,
        "learning_rate": full["learning_rate"],
    }


def to_accuracy_recipe(config: dict[str, Any]) -> dict[str, Any]:
    """The options of that training's recipe: `tuned`, with an update of its own."""
    update = config["time_to_accuracy"]["update"]
    return {"recipe_options": grid.recipe_options(config, "tuned") | update}


def of_remedies(config: dict[str, Any]) -> dict[str, Any]:
    """What the trainings with remedies for large batches are told, besides the remedies."""
    section = config["convergence"]
    return {key: section[key] for key in section if key not in NOT_OF_A_TRAINING}


def quantized_recipe(config: dict[str, Any]) -> str:
    """The recipe of the ResNet-18 that is quantized: the study's for speed, where it has that."""
    return "tuned" if "tuned" in config["grid"]["recipes"] else "course"


def of_quantized(config: dict[str, Any]) -> dict[str, Any]:
    """What the training of the ResNet-18 that is quantized is told: as a cell on one GPU."""
    training, recipe = config["training"], quantized_recipe(config)
    return of_lab(config) | {
        "recipe": recipe,
        "epochs": training["warmup_epochs"] + training["measured_epochs"],
        "batch_size": min(config["grid"]["batch_sizes"]),
        "recipe_options": grid.recipe_options(config, recipe),
    }
