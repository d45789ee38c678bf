"""Command-line options of each script that measures, from the complete configuration."""

from typing import Any

from scaling.config.config import model_options
from scaling.config.recipes import precision
from scaling.core import grid
from scaling.core.command_line import options
from scaling.core.training_options import LargeBatches, Limits, NetworkTraining, Sgd
from scaling.registry.dataset import DATASETS

Config = dict[str, Any]


def lab(config: Config) -> dict[str, Any]:
    """Return the options of every training of the lab's model, by name."""
    shared = {key: config["training"][key] for key in Sgd.model_fields}
    return {"device": config["device"], "model_width": config["model"]["width"], **shared}


def _study(config: Config) -> dict[str, Any]:
    """Return the options of every training of the study's model on this machine, by name."""
    machine = {key: config["machine"][key] for key in Limits.model_fields}
    return lab(config) | model_options(config) | machine


def dataset(config: Config) -> str:
    """What is made of which images."""
    section = config["dataset"]
    return options(section, "source", "image_size", *DATASETS.find(section["source"]).options)


def look(config: Config, nodes: int) -> str:
    """What is looked at before the first job: the most GPUs of the grid, which are on `nodes`."""
    most = {"device": config["device"], "gpus": max(config["grid"]["gpus"]), "nodes": nodes}
    return options(config["machine"] | most, "time_limit_seconds", "check", *most)


def sweep(config: Config) -> str:
    """What is sent over the interconnect, and for how long."""
    asked = config["interconnect"] | model_options(config) | {"device": config["device"]}
    return f"{options(asked)} {options(config['machine'], 'time_limit_seconds')}"


def peaks(config: Config) -> str:
    """What the GPUs compute and copy, and for how long."""
    asked = config["peaks"] | {"device": config["device"]}
    return f"{options(asked)} {options(config['machine'], 'cpu_threads', 'time_limit_seconds')}"


def recipe(config: Config, name: str) -> str:
    """The engine of a recipe and its options."""
    own = grid.recipe_options(config, name)
    return options({"engine": config["recipes"][name]["engine"], "recipe_options": own})


def own(config: Config, name: str) -> str:
    """The command of a recipe, and how many epochs it trains."""
    chosen = {key: config["training"][key] for key in ("warmup_epochs", "measured_epochs")}
    chosen |= {"device": config["device"], "command": config["recipes"][name]["command"]}
    return f"{options(chosen)} {options(config['machine'], 'cpu_threads', 'time_limit_seconds')}"


def cells(config: Config) -> str:
    """How the cells of the grid are trained and timed, besides their recipes."""
    return options(config["training"] | _study(config))


def to_accuracy(config: Config) -> str:
    """How the trainings to their end are: as many epochs as were chosen, none to settle."""
    full = config["time_to_accuracy"]
    own = {
        "warmup_epochs": 1,
        "measured_epochs": full["epochs"] - 1,
        "instrumented_iterations": 0,
        "learning_rate": full["learning_rate"],
    }
    return options(_study(config) | own)


def techniques(config: Config) -> str:
    """How networks are trained with large batches, besides the techniques."""
    training = {key: config["convergence"][key] for key in LargeBatches.model_fields}
    threads = {"cpu_threads": config["machine"]["cpu_threads"]}
    own = {"precision": precision(config)}
    return options(training | lab(config) | threads | own)


def synchronization(config: Config) -> str:
    """What is asked of gradients that are exchanged, and how networks are trained for it."""
    own: dict[str, Any] = {"world_sizes": config["grid"]["gpus"]}
    if config["recipes"].get("tuned", {}).get("engine") == "resident":
        own["tuned_options"] = grid.recipe_options(config, "tuned")
    return options(config["synchronization"] | _study(config) | own)


def quantized_network(config: Config) -> str:
    """How the lab's network is trained that is quantized."""
    return options(config | config["quantization"], "device", *NetworkTraining.model_fields)


def quantized_recipe(config: Config) -> str:
    """The recipe of the ResNet-18 that is quantized: `tuned` where the grid has that."""
    recipes: list[str] = config["grid"]["recipes"]
    return "tuned" if "tuned" in recipes else recipes[0]


def quantized_resnet(config: Config) -> str:
    """How the ResNet-18 is trained that is quantized: as a cell on one GPU."""
    training, name = config["training"], quantized_recipe(config)
    own = {
        "recipe": name,
        "epochs": training["warmup_epochs"] + training["measured_epochs"],
        "batch_size": min(config["grid"]["batch_sizes"]),
    }
    return f"{options(lab(config) | own)} {recipe(config, name)}"


def variants(config: Config) -> dict[str, dict[str, Any]]:
    """The options of each variant of a quantized network, by its name."""
    variants: list[dict[str, Any]] = config["quantization"]["variants"]
    return {
        one["name"]: {key: one[key] for key in one if key not in ("name", "seeds")}
        for one in variants
    }
