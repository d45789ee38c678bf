"""Check a configuration before any job starts."""

import math
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import create_model

from scaling.config import devices
from scaling.config.keys import Configuration
from scaling.config.scheme import STAGES
from scaling.core.grid import LIMITS
from scaling.core.section import Few, Positive, Section, Some, refuse
from scaling.registry import registry
from scaling.registry.engine import COMMAND, ENGINES, places
from scaling.registry.entries import DATASETS
from scaling.registry.strategy import Choice
from scaling.registry.update_rule import Technique, UpdateRule, uneven

IMAGES = {"cifar10": 50_000, "digits": 1_500}
"""Number of training images of built-in datasets, used before the dataset is prepared."""
LAB_MODEL, LAB_SIDE = "resnet18-cifar", 32
GENERATED = {"train_images", "test_images", "seed"}
"""Keys of `dataset` that only generated images have."""
OWN = "own"
"""Value of `dataset.source` if only a user's own commands train."""


class Recipe(Section):
    engine: str
    """Training program: `eager` (PyTorch's standard parts, as in the lab), `resident` (images on
    the GPU, compiled steps, CUDA graphs), or your plug-in (docs/extending.md)."""
    strategies: Some[Choice] | None = None
    """Entries of `grid.strategies` to measure this recipe with, such as `[ddp]`. Null: all."""
    gpus: Some[Few] | None = None
    """Entries of `grid.gpus` to measure this recipe with. Null: all."""
    batch_sizes: Some[Positive] | None = None
    """Entries of `grid.batch_sizes` to measure this recipe with. Null: all."""


def check(config: dict[str, Any], *, reads_images: bool = True) -> dict[str, Any]:
    """Return `config` with all defaults; raise UserError with one sentence for each mistake.

    If `reads_images` is false, files of the dataset may be missing.
    """
    known = requested(config)
    looks = (_path, _parts, _names, _recipes, _whole_nodes, _large_batches)
    refuse(chain.from_iterable(look(known) for look in looks[not reads_images :]))
    return known.model_dump()


def requested(config: dict[str, Any]) -> Configuration:
    """Return the configuration with all defaults, but only with the recipes that some part uses.

    If no part uses the grid, `grid.gpus` becomes `time_to_accuracy.gpus`, or [1] without
    time-to-accuracy trainings. Raise UserError for wrong keys and types.
    """
    known = Configuration.of(config)
    requests = dict.fromkeys(known.grid.recipes, "grid.recipes")
    if "time_to_accuracy" in known.parts:
        requests.setdefault(known.time_to_accuracy.recipe, "time_to_accuracy.recipe")
    for tried in known.convergence.recipes if "accuracy" in known.parts else ():
        requests.setdefault(tried.recipe, "convergence.recipes")
    known.recipes = resolved(known.recipes, requests)
    if not {"scaling", "proofs"} & {*known.parts}:
        trains = "time_to_accuracy" in known.parts
        known.grid.gpus = known.time_to_accuracy.gpus if trains else [1]
    if not _needs_images(known):
        known.dataset.source, known.dataset.path = OWN, None
    return known


def _needs_images(known: Configuration) -> bool:
    """Return whether a job trains on the images of the dataset. A user's command does not."""
    of_engines = [name for name, options in _trained(known).items() if "command" not in options]
    return bool(of_engines) or known.parts != ["scaling"]


def _trained(config: Configuration) -> dict[str, dict[str, Any]]:
    """Return the recipes that the grid and the time-to-accuracy trainings use, by name."""
    used = config.grid.recipes if "scaling" in config.parts else []
    if "time_to_accuracy" in config.parts:
        used = [*used, config.time_to_accuracy.recipe]
    return {name: options for name, options in config.recipes.items() if name in used}


def train_images(config: dict[str, Any], manifest: dict[str, Any]) -> int | None:
    """Return the number of training images, from `manifest` if available; None if unknown."""
    section = config["dataset"]
    known = IMAGES | {"synthetic": section["train_images"]}
    return manifest.get("train_images", known.get(section["source"]))


def check_images(config: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raise UserError if a key needs more training images than the dataset is known to have."""
    images, on = train_images(config, manifest), config["parts"]
    shared = config["synchronization"]
    most = min(max(config["grid"]["gpus"]), config["machine"]["gpus_per_node"] or math.inf)
    batches, few = most * (most > 1) * shared["batch_size"], shared["train_images"] or math.inf
    calibration = config["quantization"]["calibration_images"]
    held_out = config["convergence"]["held_out_images"] + 1
    refuse(
        f"{key} needs {count} training images, and there are {min(images, limit)}: lower it"
        for part, key, count, limit in (
            ("int8", "quantization.calibration_images", calibration, math.inf),
            ("accuracy", "convergence.held_out_images", held_out, math.inf),
            ("proofs", "synchronization.batch_size", batches, few),
        )
        if part in on and images and count > min(images, limit)
    )


def _parts(config: Configuration) -> Iterator[str]:
    """Yield an error text if `parts` has `accuracy` or `int8` and another key forbids it."""
    model, side, int8 = config.model.name, config.dataset.image_size, config.quantization
    if "accuracy" in config.parts and model != LAB_MODEL:
        yield f"parts has accuracy, of {LAB_MODEL} alone (allowed for {model}: leave it out)"
    if "int8" in config.parts and side != LAB_SIDE:
        yield f"parts has int8, of images of {LAB_SIDE} × {LAB_SIDE} pixels (allowed: leave it out)"
    if "int8" in config.parts and STAGES[0] in [one.name for one in int8.variants]:
        yield f"quantization.variants has {STAGES[0]} (allowed: other names, this is the network's)"
    shown = [{*int8.seeds}.intersection(one.seeds or int8.seeds) for one in int8.variants]
    if "int8" in config.parts and not any(shown):
        wanted = f"quantization.seeds {int8.seeds}"
        yield f"quantization.variants has no entry for {wanted} (allowed: one without seeds)"


def _names(config: Configuration) -> Iterator[str]:
    taken = config.study in ("published", "replay", "results")
    if taken or Path(config.study).suffix in (".csv", ".json", ".txt"):
        yield f"study is {config.study} (allowed: no name of a file or folder in results/)"
    for path in config.plugins:
        if not hasattr(registry.loaded(Path(path)), "ENTRY"):
            yield f"plugins has {path}, which has no ENTRY (docs/extending.md has examples)"
    if config.dataset.source == OWN and _needs_images(config):
        yield "dataset.source is own (allowed: where nothing but recipes of commands is trained)"


def _recipes(config: Configuration) -> Iterator[str]:
    """Yield a sentence for each mistake in recipes, including a wrong strategy or device."""
    grid, full, used = config.grid, config.time_to_accuracy, _trained(config)
    in_grid = "scaling" in config.parts
    if "time_to_accuracy" in config.parts and "command" in used[full.recipe]:
        yield f"time_to_accuracy.recipe is {full.recipe}, a command (allowed: one of an engine)"
    for name, options in used.items():
        if options.get("zero_gamma") and (model := config.model.name) != LAB_MODEL:
            yield f"recipes.{name}.zero_gamma is true for {model} (allowed: for {LAB_MODEL})"
    for name in grid.recipes if in_grid else ():
        limits = {key: used[name].get(key) or getattr(grid, key) for key in LIMITS}
        for key, limit in limits.items():
            if set(limit).isdisjoint(allowed := getattr(grid, key)):
                there = ", ".join(map(str, allowed))
                yield f"recipes.{name}.{key} has none of grid.{key} (allowed: {there})"
        if "command" in used[name]:
            taken = places(used[name]["command"])
            for key, several, ways in (
                ("gpus", max(limits["gpus"]) > 1, {"gpus", "gpus_per_node"}),
                ("batch_size", len(limits["batch_sizes"]) > 1, {"batch_size", "global_batch_size"}),
            ):
                if several and taken.isdisjoint(ways):
                    yield f"recipes.{name}.command takes no {{{key}}} (allowed: one in the grid)"
    strategies = grid.strategies if in_grid else ["ddp"]
    yield from devices.unsupported(config.device, strategies, used, max(grid.gpus))


def _whole_nodes(config: Configuration) -> Iterator[str]:
    """Yield a sentence for each key with more GPUs than a node that do not fill whole nodes."""
    per_node = config.machine.gpus_per_node
    requests = {"grid.gpus": config.grid.gpus}
    if "time_to_accuracy" in config.parts:
        requests["time_to_accuracy.gpus"] = config.time_to_accuracy.gpus
    for key, numbers in requests.items():
        if uneven := [n for n in numbers if per_node and n > per_node and n % per_node]:
            yield f"{key} has {uneven} (allowed: {per_node} of a node, fewer, or multiples)"


def _path(config: Configuration) -> Iterator[str]:
    dataset, known = config.dataset, DATASETS.names()
    if dataset.source not in known:
        yield f"dataset.source is {dataset.source!r}: it should be one of {', '.join(known)}"
        return
    source, path = DATASETS.find(dataset.source), dataset.path
    if path is None:
        if source.needs_path:
            folder = "a folder or tar of train/<class>/*"
            yield f"dataset.path is null (allowed for {source.name}: {folder})"
    elif "path" not in source.options:
        yield f"dataset.path is {path!r} (allowed for {source.name}: null)"
    # Path.exists raises errors for a path that is too long, or of no user.
    elif not os.path.exists(os.path.expanduser(path)):  # noqa: PTH110, PTH111
        yield f"dataset.path is {path!r}, which does not exist from where Snakemake works"
    given = dataset.model_dump(include=GENERATED - {*source.options}, exclude_defaults=True)
    for key, value in given.items() if source.name != OWN else ():
        yield f"dataset.{key} is {value} (allowed for {source.name}: leave it out)"


def _large_batches(config: Configuration) -> Iterator[str]:
    """Yield a sentence for each mistake in `convergence` and `time_to_accuracy`."""
    section, full = config.convergence, config.time_to_accuracy
    odd = [gpus for gpus in full.gpus if full.global_batch % gpus]
    if odd and "time_to_accuracy" in config.parts:
        whole = full.global_batch
        yield f"time_to_accuracy.gpus has {odd} (allowed: divisors of its global_batch, {whole})"
    if "accuracy" not in config.parts:
        return
    if odd := uneven(section.global_batches, section.reference_batch, section.gpus):
        gpus = section.gpus
        yield f"convergence.global_batches has {odd} (allowed: multiples of its gpus, {gpus})"
    few, held = section.train_images, section.held_out_images
    if few and held >= few:
        yield f"convergence.held_out_images is {held} (allowed: fewer than its train_images, {few})"
    tries = [(tried, config.recipes[tried.recipe]) for tried in section.recipes]
    precisions = sorted({options["precision"] for _, options in tries if "precision" in options})
    if len(precisions) > 1:
        both = " and ".join(precisions)
        yield f"convergence.recipes has recipes of precision {both} (allowed: one for all)"
    for tried, options in tries:
        if not issubclass(ENGINES.find(options["engine"]).options, UpdateRule):
            engine = f"{tried.recipe}, of engine {options['engine']}"
            yield f"convergence.recipes has {engine} (allowed: of one like resident)"
        for message in Technique.sentences(of_technique(tried.model_dump(), options)):
            yield f"convergence.recipes has {tried.name}: {message}"


def techniques(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each technique in `convergence.recipes`, by its name."""
    return {
        tried["name"]: of_technique(tried, config["recipes"][tried["recipe"]])
        for tried in config["convergence"]["recipes"]
    }


def of_technique(tried: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a technique that differ from their defaults.

    `tried` is an element of `convergence.recipes`. Its options override those of `recipe`.
    """
    options = Technique.model_construct(**{**recipe, **tried})
    return options.model_dump(exclude_defaults=True)


def resolved(
    recipes: Mapping[str, Mapping[str, Any]], requests: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return all options of each recipe in `requests`, by name; raise UserError for mistakes.

    `requests` maps a recipe's name to the configuration's key that names the recipe, for messages.
    """
    complete: dict[str, dict[str, Any]] = {}
    messages: list[str] = []
    for name, key in requests.items():
        try:
            values = _with_base(name, key, recipes)
            options = ENGINES.find(values["engine"]).options
            kind = create_model("Recipe", __base__=(options, Recipe))
            messages += (wrong := kind.sentences(values, above=("recipes", name)))
            complete |= {} if wrong else {name: kind.of(values).model_dump()}
        except ValueError as error:
            messages.append(str(error))
    refuse(messages)
    return complete


def _with_base(name: str, key: str, recipes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of recipe `name` and of its bases; raise ValueError for a mistake."""
    whole: dict[str, Any] = {}
    others = list(recipes)
    engines = [engine for engine in ENGINES.names() if engine != COMMAND.name]
    while "engine" not in whole:
        if name not in others:
            there = ", ".join(others) or "none"
            raise ValueError(f"{key} names recipe {name!r} (allowed: {there})")
        others.remove(name)
        values, place = dict(recipes[name]), f"recipes.{name}"
        if "command" in values and values.keys().isdisjoint(("engine", "base")):
            values["engine"] = COMMAND.name
        if ("engine" in values) == ("base" in values):
            listed = ", ".join(engines)
            near = get_close_matches("command", values, 1)
            hint = f" (perhaps {near[0]} is command)" if near else ""
            raise ValueError(
                f"{place} needs an engine ({listed}), or else a base or a command{hint}"
            )
        whole = values | whole
        name, key = whole.pop("base", None), f"{place}.base"
    if whole["engine"] == COMMAND.name:
        whole.pop("strategies", None)  # `grid.of` gives it its own.
    elif whole["engine"] not in engines:
        raise ValueError(f"{place}.engine is {whole['engine']!r} (allowed: {', '.join(engines)})")
    return whole
