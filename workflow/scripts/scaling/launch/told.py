"""Command-line options of each script that measures, from the configuration."""

from typing import Any

from scaling.config.config import model_options
from scaling.config.technique import by_name
from scaling.core import grid
from scaling.core.command_line import options
from scaling.registry.dataset import DATASETS

Config = dict[str, Any]
OF_ALL = ["learning_rate", "momentum", "weight_decay", "crop_padding", "horizontal_flip"]
LIMITS = ["cpu_threads", "time_limit_seconds", "collective_timeout_seconds"]
NOT_OF_A_TRAINING = ["global_batches", "remedies", "accuracy_margin", "accuracies"]
"""Keys of the section `convergence` that no training depends on."""


def lab(config: Config) -> dict[str, Any]:
    """Return the options of every training of the lab's model, by name."""
    shared = {key: config["training"][key] for key in OF_ALL}
    return {"device": config["device"], "model_width": config["model"]["width"], **shared}


def study(config: Config) -> dict[str, Any]:
    """Return the options of every training of the study's model, by name."""
    return lab(config) | model_options(config)


def limits(config: Config) -> str:
    """The cores and seconds that a training may take."""
    return options(config["machine"], *LIMITS)


def dataset(config: Config) -> str:
    """What is made of which images."""
    section = {"image_size": 32} | config["dataset"]
    return options(section, "source", "image_size", *DATASETS.find(section["source"]).options)


def look(config: Config, nodes: int) -> str:
    """What is looked at before the first job: the most GPUs of the grid, which are on `nodes`."""
    machine = {"check": "refuse", "device": config["device"]} | config["machine"]
    most = {"gpus": max(config["grid"]["gpus"]), "nodes": nodes}
    return options(machine | most, *("check", "gpus", "nodes", "device", "time_limit_seconds"))


def sweep(config: Config) -> str:
    """What is sent over the interconnect, and for how long."""
    section = options(config["interconnect"], "message_bytes", "warmup", "repeats", "iterations")
    limit = options(config["machine"], "time_limit_seconds")
    return f"--device {config['device']} {options(model_options(config))} {section} {limit}"


def peaks(config: Config) -> str:
    """What the GPUs compute and copy, and for how long."""
    limit = options(config["machine"], "cpu_threads", "time_limit_seconds")
    return f"--device {config['device']} {options(config['peaks'])} {limit}"


def recipe(config: Config, name: str, **others: Any) -> str:
    """The engine of a recipe and its options, with `others` in the place of some."""
    return options(_recipe(config, name, **others))


def _recipe(config: Config, name: str, **others: Any) -> dict[str, Any]:
    own = grid.recipe_options(config, name) | others
    return {"engine": config["recipes"][name]["engine"], "recipe_options": own}


def cells(config: Config) -> str:
    """How the cells of the grid are trained and timed, besides their recipes."""
    return f"{options(config['training'] | study(config))} {limits(config)}"


def to_accuracy(config: Config) -> str:
    """How the trainings to their end are: as many epochs as were chosen, none to settle."""
    full = config["time_to_accuracy"]
    training = study(config) | {
        "warmup_epochs": 1,
        "measured_epochs": full["epochs"] - 1,
        "instrumented_iterations": 0,
        "learning_rate": full["learning_rate"],
    }
    return f"{options(training)} {limits(config)}"


def remedies(config: Config) -> str:
    """How networks are trained with remedies for large batches, besides these."""
    section = config["convergence"]
    training = {key: section[key] for key in section if key not in NOT_OF_A_TRAINING}
    return f"{options(training | lab(config))} {options(config['machine'], 'cpu_threads')}"


def synchronization(config: Config) -> str:
    """What is asked of gradients that are exchanged, and how networks are trained for it."""
    own: dict[str, Any] = {"world_sizes": config["grid"]["gpus"]}
    if config["recipes"].get("tuned", {}).get("engine") == "resident":
        own["tuned_options"] = grid.recipe_options(config, "tuned")
    section = options(config["synchronization"])
    return f"{section} {options(study(config) | own)} {limits(config)}"


def quantized_network(config: Config) -> str:
    """How the lab's network is trained that is quantized."""
    section = {"biases": None} | config["quantization"] | {"device": config["device"]}
    chosen = ("device", "epochs", "batch_size", "learning_rate", "momentum", "biases")
    return options(section, *chosen)


def quantized_engine(config: Config) -> str:
    """The engine that trains the ResNet-18 that is quantized."""
    return str(config["recipes"][_quantized_recipe(config)]["engine"])


def _quantized_recipe(config: Config) -> str:
    """The recipe of that ResNet-18: `tuned` where the grid has that."""
    recipes: list[str] = config["grid"]["recipes"]
    return "tuned" if "tuned" in recipes else recipes[0]


def quantized_resnet(config: Config) -> str:
    """How the ResNet-18 is trained that is quantized: as a cell on one GPU."""
    training, recipe = config["training"], _quantized_recipe(config)
    own = {
        "recipe": recipe,
        "epochs": training["warmup_epochs"] + training["measured_epochs"],
        "batch_size": min(config["grid"]["batch_sizes"]),
        **_recipe(config, recipe),
    }
    return options(lab(config) | own)


def variants(config: Config) -> dict[str, dict[str, Any]]:
    """The options of each variant of a quantized network, by its name."""
    return by_name(config["quantization"]["variants"])


def calibration(config: Config) -> str:
    """On how many images of the training set a network is quantized."""
    return options(config["quantization"], "calibration_images")
