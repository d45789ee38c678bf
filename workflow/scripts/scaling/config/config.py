"""The configuration, checked before anything runs."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sized
from itertools import product
from pathlib import Path
from typing import Any

from scaling.config import devices, recipes, technique
from scaling.config.experiment_keys import Convergence, Quantization
from scaling.config.keys import EMPTY, PARTS, Configuration, Dataset, Model
from scaling.config.recipes import wrong
from scaling.config.scheme import STAGES
from scaling.core import plugins
from scaling.core.grid import repeats_of
from scaling.registry import command
from scaling.registry.dataset import DATASETS

LAB_MODEL, LAB_SIDE, MOST_RUNS = "resnet18-cifar", 32, 100_000


def check(config: dict[str, Any], *, reads_images: bool = True) -> None:
    """Raise UserError with one sentence per mistake: the key, what is wrong, what is allowed.

    A study that no longer reads its images may name a dataset, and a path, that are not here.
    """
    values = asked(config)
    sentences = list(_across_keys(Configuration.of(values), values, reads_images))
    if sentences:
        raise wrong("; ".join(sentences))


def _can_be_written(config: dict[str, Any]) -> None:
    """Raise UserError for a section that no message and no file could hold."""
    for section, values in config.items():
        try:
            json.dumps(values)
        except (RecursionError, TypeError, ValueError) as error:
            said = "has a number of thousands of digits, or is nested too deeply"
            raise wrong(f"{section} {said}") from error


def asked(config: dict[str, Any]) -> dict[str, Any]:
    """Return what is measured of `config`: with all keys, without parts that are off.

    Bits are variants.
    """
    _can_be_written(config)
    if "knobs" in config:
        raise wrong(
            "knobs is no section any more: each of its variants is a recipe, as {bucket100: "
            "{base: plain, bucket_cap_mb: 100}}"
        )
    if "update" in (config.get("time_to_accuracy") or {}):
        raise wrong(
            "time_to_accuracy.update is no key any more: its options are a recipe's, as {fast: "
            "{base: tuned, muon: 0.12}}, which time_to_accuracy.recipe names"
        )
    if "recipes" in config:
        config = config | {"recipes": recipes.resolved(config["recipes"])}
    known = Configuration.of(config)
    return _with_own_data(_without_parts_off(known.model_dump(), known.parts))


def _without_parts_off(config: dict[str, Any], on: Iterable[str]) -> dict[str, Any]:
    """Return the configuration with the sections of all parts that are not `on` emptied.

    The synchronization experiments need the most GPUs of the grid; without them and the grid only
    the GPUs of trainings to an accuracy remain.
    """
    for part in PARTS:
        if part not in on:
            emptied = {name: config[name] | keys for name, keys in EMPTY[part].items()}
            config = config | emptied
    if not {"scaling", "proofs"} & set(on):
        gpus = config["time_to_accuracy"]["gpus"] or [1]
        config = config | {"grid": config["grid"] | {"gpus": gpus}}
    return config


def _with_own_data(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` without images where every training is a command of the user's own."""
    if _needs_images(config) or not config["grid"]["seeds"]:
        return config
    return config | {"dataset": config["dataset"] | {"source": recipes.OWN, "path": None}}


def _needs_images(config: dict[str, Any]) -> str | None:
    """Return what of a configuration trains on its images, by a key; None for nothing."""
    uses = {
        f"grid.recipes has {name}": config["recipes"].get(name, {}).get("engine") != "command"
        for name in config["grid"]["recipes"]
        if config["grid"]["seeds"]
    }
    uses |= {
        "convergence.remedies": config["convergence"]["remedies"],
        "time_to_accuracy.gpus": config["time_to_accuracy"]["gpus"],
        "synchronization.seeds": config["synchronization"]["seeds"],
        "quantization.seeds": config["quantization"]["seeds"],
    }
    return next((key for key, asked in uses.items() if asked), None)


def _across_keys(  # noqa: C901  (one sentence after the other)
    config: Configuration, values: dict[str, Any], reads_images: bool
) -> Iterator[str]:
    """What is wrong although each key is right: paths exist, and one key fits another."""
    if reads_images:
        yield from _path(config.dataset)
    if recipes.OWN in config.grid.strategies:
        yield "grid.strategies has own (allowed: leave it out, recipes that are commands have it)"
    if config.dataset.source == recipes.OWN and (key := _needs_images(values)):
        yield f"dataset.source is own, and {key} needs images (allowed: recipes of commands alone)"
    if config.study in ("published", "replay") or Path(config.study).suffix in (".csv", ".json"):
        yield f"study is {config.study} (allowed: no name of a file or folder in results/)"
    for path in config.plugins:
        if not hasattr(plugins.load(Path(path)), "ENTRY"):
            yield f"plugins has {path}, which has no ENTRY (docs/extending.md has examples)"
    grid, per_node = config.grid, config.machine.gpus_per_node
    full = config.time_to_accuracy
    in_grid, strategies = (grid.recipes, grid.strategies) if grid.seeds else ([], ["ddp"])
    used = [*in_grid, *([full.recipe] if full.gpus else [])]
    known = values["recipes"]
    if absent := [name for name in [*grid.recipes, *used] if name not in known]:
        name = absent[0]
        asks = "grid.recipes" if name in grid.recipes else "time_to_accuracy.recipe"
        now = f", which is called {recipes.RENAMED[name]} now" if name in recipes.RENAMED else ""
        yield f"{asks} asks for recipe {name}{now} (allowed: those of recipes, {', '.join(known)})"
        return
    if full.gpus and known[full.recipe]["engine"] == "command":
        yield f"time_to_accuracy.recipe is {full.recipe}, a command (allowed: one of an engine)"
    recipes_used = {name: known[name] for name in used}
    if max(grid.gpus) > 1:
        of_grid = {name: known[name] for name in in_grid}
        yield from devices.need_other_strategies(strategies, of_grid)
    if config.device == "cpu":
        for said in devices.need_gpus(strategies, recipes_used, max(grid.gpus)):
            yield f"{said}, and device is cpu"
    uneven = [n for n in grid.gpus if per_node and n > per_node and n % per_node]
    if uneven:
        yield (
            f"grid.gpus has {', '.join(map(str, uneven))} and machine.gpus_per_node is {per_node} "
            "(allowed: numbers of GPUs up to one node's, or multiples of it)"
        )
    if grid.seeds:
        yield from _cells(config)
    if config.convergence.remedies:
        yield from _remedies(config.convergence)
    if uneven := [gpus for gpus in full.gpus if full.global_batch % gpus]:
        yield (
            f"time_to_accuracy.gpus has {', '.join(map(str, uneven))} and time_to_accuracy."
            f"global_batch is {full.global_batch} (allowed: numbers that divide it)"
        )
    if reads_images:
        yield from _missing_extras(config, recipes_used)
    if config.quantization.seeds and (config.quantization.variants or reads_images):
        yield from _variants(config.quantization)
    for name in ("peers", "resnet18"):
        if getattr(config.quantization, name) and not config.quantization.seeds:
            yield f"quantization.seeds is empty, but quantization.{name} asks for Part B"


def leave_out(config: dict[str, Any]) -> list[str]:
    """Take out of `config` what is not `asked`, and what other networks than the lab's do not have.

    Of the latter it returns what and why: techniques for large batches are tried on the lab's
    model; Part B needs images of 32×32 pixels.
    """
    config |= asked(config)
    said, name, side = [], config["model"]["name"], config["dataset"]["image_size"]
    if name != LAB_MODEL and config["convergence"]["remedies"]:
        config["convergence"] |= {"remedies": []}
        said.append(f"techniques for large batches are left out: they are tried on {LAB_MODEL}")
    if side != LAB_SIDE and config["quantization"]["seeds"]:
        config["quantization"] |= {"seeds": [], "peers": [], "resnet18": False}
        said.append("Part B is left out: its network sees images of 32 × 32 pixels")
    return said


def model_options(config: dict[str, Any]) -> dict[str, Any]:
    """The section model as options of the scripts."""
    section = Model.of(config["model"], "model")
    return {
        "model": section.name,
        "model_width": section.width,
        "model_options": section.options,
    }


def _path(dataset: Dataset) -> Iterator[str]:
    known = DATASETS.names()
    if dataset.source not in known:
        yield f"dataset.source is {dataset.source!r}: it should be one of {', '.join(known)}"
        return
    source, path = DATASETS.find(dataset.source), dataset.path
    if path is None:
        if source.needs_path:
            layout = "train/<class>/*"
            yield f"dataset.path is null (allowed for {source.name}: a folder or tar of {layout})"
    elif "path" not in source.options:
        yield f"dataset.path is {path!r} (allowed for {source.name}: null)"
    # Path.exists raises errors for a path that is too long, or of no user.
    elif not os.path.exists(os.path.expanduser(path)):  # noqa: PTH110, PTH111
        yield f"dataset.path is {path!r}, which does not exist from where Snakemake works"


def _cells(config: Configuration) -> Iterator[str]:
    """What is wrong with the cells of the grid."""
    grid = config.grid
    lists: list[Sized] = [grid.recipes, grid.strategies, grid.gpus, grid.batch_sizes, grid.seeds]
    runs = math.prod(len(values) for values in lists) * max(
        [1, *(wanted.repeats for wanted in grid.repeats)]
    )
    if runs > MOST_RUNS:
        yield f"grid asks for {runs:,} runs (allowed: at most {MOST_RUNS:,})"
        return
    for name in grid.recipes:
        limits = getattr(config.recipes, name).strategies or grid.strategies
        if limits == [recipes.OWN]:
            named = command.places(getattr(config.recipes, name).command)
            if len(grid.batch_sizes) > 1 and named.isdisjoint(("batch_size", "global_batch_size")):
                yield f"recipes.{name}.command takes no {{batch_size}} (allowed: one in the grid)"
        elif not set(limits) & set(grid.strategies):
            yield (
                f"recipes.{name}.strategies is {', '.join(limits)} and grid.strategies has none of "
                f"them (it has {', '.join(grid.strategies)}): the recipe would have no cell"
            )
    cells = list(
        product(grid.recipes, [*grid.strategies, recipes.OWN], grid.gpus, grid.batch_sizes)
    )
    for place, wanted in enumerate(grid.repeats):
        if not any(repeats_of(wanted.model_dump(), *cell) for cell in cells):
            yield f"grid.repeats[{place}] is of no cell (allowed: values of the grid's own lists)"


def _remedies(section: Convergence) -> Iterator[str]:
    uneven = technique.uneven(section.global_batches, section.reference_batch, section.gpus)
    if uneven:
        yield (
            f"convergence.global_batches has {', '.join(map(str, uneven))} and convergence.gpus is "
            f"{section.gpus} (allowed: multiples of it)"
        )
    names = [remedy.name for remedy in section.remedies]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        shown = ", ".join(twice)
        yield f"convergence.remedies has {shown} more than once (allowed: each name once)"


def _variants(section: Quantization) -> Iterator[str]:
    """What is wrong with the quantized networks."""
    taken, drawable = {STAGES[0]}, []
    for place, variant in enumerate(section.variants):
        key, seeds = f"quantization.variants[{place}]", variant.seeds or section.seeds
        if not set(seeds) <= set(section.seeds):
            yield f"{key}.seeds are {seeds} (allowed: those of the section)"
        if variant.name in taken:
            yield f"{key} is called {variant.name} (allowed: a name not taken)"
        taken.add(variant.name)
        if variant.has_histograms and section.seeds[0] in seeds:
            drawable.append(variant.name)
    if section.histograms not in drawable:
        yield (
            f"quantization.histograms is {section.histograms!r} (allowed: a variant with int8 "
            f"logits and one scale for each tensor, here {', '.join(drawable) or 'none'})"
        )


def _missing_extras(config: Configuration, recipes: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Say which keys, of the `recipes` used too, need an extra whose folder is not here."""
    fused = [name for name, options in recipes.items() if options.get("fused_norms")]
    if fused and not plugins.has_extra("kernels"):
        yield (
            f"recipes.{fused[0]}.fused_norms needs workflow/scripts/extras/kernels, which is not "
            "here: restore that folder, or set the key to false"
        )
    section = config.quantization
    asked = [name for name in ("peers", "resnet18") if getattr(section, name)]
    asked += [
        f"variants[{place}]"
        for place, variant in enumerate(section.variants)
        if variant.needs_moments
    ]
    if section.seeds and asked and not plugins.has_extra("bits"):
        yield (
            f"quantization.{asked[0]} needs workflow/scripts/extras/bits, which is not here: "
            "restore that folder, or leave the key as in config/config.yaml"
        )
