"""The configuration, checked before anything runs."""

import math
import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sized
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from scaling.config import devices, recipes
from scaling.config.keys import EMPTY, PARTS, Configuration
from scaling.config.scheme import STAGES
from scaling.core.errors import UserError
from scaling.core.training_options import Model
from scaling.registry import registry
from scaling.registry.dataset import DATASETS
from scaling.registry.engine import ENGINES, places
from scaling.registry.update_rule import Technique, UpdateRule, uneven

LAB_MODEL, LAB_SIDE, MOST_RUNS = "resnet18-cifar", 32, 100_000


def check(config: dict[str, Any], *, reads_images: bool = True) -> None:
    """Raise UserError with one sentence per mistake: the key, what is wrong, what is allowed.

    A study that no longer reads its images may name a dataset, and a path, that are not here.
    """
    known, sentences = _right(config)
    for look in _looks(known, reads_images):
        try:
            sentences.extend(look)
        except AttributeError:  # What is wrong is not there.
            if not sentences:
                raise
    _refuse(sentences)


def asked(config: dict[str, Any]) -> dict[str, Any]:
    """Return what is measured of `config`: with all keys, without parts that are off.

    Bits are variants, and of the recipes only those that are used are left.
    """
    known, sentences = _right(config)
    _refuse(sentences)
    return known.model_dump()


def _refuse(sentences: list[str]) -> None:
    """Raise UserError with these sentences, if any; several of them have a line each."""
    told = [textwrap.shorten(one, 1000) for one in dict.fromkeys(sentences)]
    if told:
        between = " " if len(told) == 1 else "\n  "
        raise UserError(between.join(["the configuration is wrong:", *told]))


def _right(config: dict[str, Any]) -> tuple[Configuration, list[str]]:
    """Return what of `config` is right and asked for, and a sentence for each mistake.

    Without the grid and the synchronization experiments, which need its most GPUs, only those of
    trainings to an accuracy remain.
    """
    known, sentences = Configuration.right(config), Configuration.sentences(config)
    sentences = recipes.gone(config) or sentences
    off = set(PARTS) - {*getattr(known, "parts", PARTS)}
    for name, emptied in (item for part in off for item in EMPTY[part].items()):
        vars(getattr(known, name)).update(emptied)
    given = vars(known).pop("recipes", {})
    with suppress(AttributeError) if sentences else nullcontext():
        known.recipes, more = recipes.resolved(given, _ask(known))
        sentences += more
        if {"scaling", "proofs"} <= off:
            known.grid.gpus = known.time_to_accuracy.gpus or [1]
        if known.grid.seeds and not _needs_images(known):
            known.dataset.source, known.dataset.path = recipes.OWN, None
    return known, sentences


def _ask(known: Configuration) -> dict[str, str]:
    """Return each recipe that is used, by its name, and the key that asks for it."""
    asks = dict.fromkeys(getattr(known.grid, "recipes", []), "grid.recipes")
    if known.time_to_accuracy.gpus:
        asks.setdefault(known.time_to_accuracy.recipe, "time_to_accuracy.recipe")
    for tried in known.convergence.recipes:
        asks.setdefault(tried.recipe, "convergence.recipes")
    return asks


def _needs_images(known: Configuration) -> str | None:
    """Return what of a configuration trains on its images, by a key; None for nothing."""
    for name, own in _trained(known).items():
        if name in known.grid.recipes and "command" not in own:
            return f"grid.recipes has {name}"
    asked = {
        "convergence.recipes": known.convergence.recipes,
        "time_to_accuracy.gpus": known.time_to_accuracy.gpus,
        "synchronization.seeds": known.synchronization.seeds,
        "quantization.seeds": known.quantization.seeds,
    }
    return next((key for key, values in asked.items() if values), None)


def _looks(known: Configuration, reads_images: bool) -> Iterator[Iterator[str]]:
    """What is wrong although each key is right: paths exist, and one key fits another."""
    if reads_images:
        yield _path(known)
        yield _missing_extras(known)
    yield _names(known)
    yield _recipes(known)
    yield _cells(known)
    yield _large_batches(known)
    yield _variants(known, reads_images)


def _names(config: Configuration) -> Iterator[str]:
    if config.study in ("published", "replay") or Path(config.study).suffix in (".csv", ".json"):
        yield f"study is {config.study} (allowed: no name of a file or folder in results/)"
    for path in config.plugins:
        if not hasattr(registry.loaded(Path(path)), "ENTRY"):
            yield f"plugins has {path}, which has no ENTRY (docs/extending.md has examples)"
    if recipes.OWN in config.grid.strategies:
        yield "grid.strategies has own (allowed: leave it out, recipes that are commands have it)"
    if config.dataset.source == recipes.OWN and (key := _needs_images(config)):
        yield f"dataset.source is own, and {key} needs images (allowed: recipes of commands alone)"


def _trained(config: Configuration) -> dict[str, dict[str, Any]]:
    """Return the recipes of the grid's cells and of trainings to an accuracy."""
    used = [*(config.grid.recipes if config.grid.seeds else [])]
    used += [config.time_to_accuracy.recipe] if config.time_to_accuracy.gpus else []
    return {name: own for name, own in config.recipes.items() if name in used}


def _recipes(config: Configuration) -> Iterator[str]:
    """What is wrong with the options of recipes, for these strategies and devices."""
    grid, full, used = config.grid, config.time_to_accuracy, _trained(config)
    strategies = grid.strategies if grid.seeds else ["ddp"]
    if full.gpus and config.recipes.get(full.recipe, {}).get("engine") == "command":
        yield f"time_to_accuracy.recipe is {full.recipe}, a command (allowed: one of an engine)"
    for name, own in used.items():
        if own.get("zero_gamma") and config.model.name != LAB_MODEL:
            model = config.model.name
            yield f"recipes.{name}.zero_gamma is true for {model} (allowed: for {LAB_MODEL})"
    yield from devices.unfit(config.device, strategies, used, max(grid.gpus))
    per_node = config.machine.gpus_per_node
    if uneven := [n for n in grid.gpus if per_node and n > per_node and n % per_node]:
        yield f"grid.gpus has {uneven} (allowed: {per_node} of a node, fewer, or multiples)"


def leave_out(config: dict[str, Any]) -> list[str]:
    """Take out of `config` what is not `asked`, and what other networks than the lab's do not have.

    Returns what the latter is, and why.
    """
    config |= asked(config)
    said, name, side = [], config["model"]["name"], config["dataset"]["image_size"]
    if name != LAB_MODEL and config["convergence"]["recipes"]:
        config["convergence"] |= {"recipes": []}
        said.append(f"techniques for large batches are left out: they are tried on {LAB_MODEL}")
    if side != LAB_SIDE and config["quantization"]["seeds"]:
        config["quantization"] |= {"seeds": [], "resnet18": False}
        said.append("Part B is left out: its network sees images of 32 × 32 pixels")
    return said


def model_options(config: dict[str, Any]) -> dict[str, Any]:
    """Return the section model as options of the scripts, by name."""
    own = Model.of(config["model"], "model")
    return {"model": own.name, "model_width": own.width, "model_options": own.options}


def _path(config: Configuration) -> Iterator[str]:
    dataset, known = config.dataset, DATASETS.names()
    if dataset.source not in known:
        yield f"dataset.source is {dataset.source!r}: it should be one of {', '.join(known)}"
        return
    source, path = DATASETS.find(dataset.source), dataset.path
    if path is None and source.needs_path:
        layout = "train/<class>/*"
        yield f"dataset.path is null (allowed for {source.name}: a folder or tar of {layout})"
    elif path is None:
        return
    elif "path" not in source.options:
        yield f"dataset.path is {path!r} (allowed for {source.name}: null)"
    # Path.exists raises errors for a path that is too long, or of no user.
    elif not os.path.exists(os.path.expanduser(path)):  # noqa: PTH110, PTH111
        yield f"dataset.path is {path!r}, which does not exist from where Snakemake works"


def _cells(config: Configuration) -> Iterator[str]:
    """What is wrong with the cells of the grid."""
    grid = config.grid
    if not grid.seeds:
        return
    lists: list[Sized] = [grid.recipes, grid.strategies, grid.gpus, grid.batch_sizes, grid.seeds]
    if (runs := math.prod(map(len, lists)) * grid.repeats) > MOST_RUNS:
        yield f"grid asks for {runs:,} runs (allowed: at most {MOST_RUNS:,})"
        return
    for name in grid.recipes:
        own = config.recipes.get(name, {})
        limits = own.get("strategies") or grid.strategies
        if limits == [recipes.OWN]:
            named = places(own["command"])
            if len(grid.batch_sizes) > 1 and named.isdisjoint(("batch_size", "global_batch_size")):
                yield f"recipes.{name}.command takes no {{batch_size}} (allowed: one in the grid)"
        elif not set(limits) & set(grid.strategies):
            there = ", ".join(grid.strategies)
            yield f"recipes.{name}.strategies has none of grid.strategies (allowed: {there})"


def _missing_extras(config: Configuration) -> Iterator[str]:
    """Say which keys need an extra whose folder is not here."""
    trained, section = _trained(config).items(), config.quantization
    fused = [f"recipes.{name}.fused_norms" for name, own in trained if own.get("fused_norms")]
    bits = ["quantization.resnet18"] * section.resnet18
    for extra, keys in (("kernels", fused), ("bits", bits if section.seeds else [])):
        if keys and not registry.has_extra(extra):
            folder = f"workflow/scripts/extras/{extra}"
            yield f"{keys[0]} needs {folder}, which is not here: restore it, or leave the key out"


def _large_batches(config: Configuration) -> Iterator[str]:
    """What is wrong with the trainings of large batches, and to an accuracy."""
    section, full = config.convergence, config.time_to_accuracy
    if odd := [gpus for gpus in full.gpus if full.global_batch % gpus]:
        whole = full.global_batch
        yield f"time_to_accuracy.gpus has {odd} (allowed: divisors of its global_batch, {whole})"
    odd = uneven(section.global_batches, section.reference_batch, section.gpus)
    if section.recipes and odd:
        gpus = section.gpus
        yield f"convergence.global_batches has {odd} (allowed: multiples of its gpus, {gpus})"
    named = [config.recipes.get(tried.recipe, {}) for tried in section.recipes]
    precisions = sorted({own["precision"] for own in named if "precision" in own})
    if len(precisions) > 1:
        both = " and ".join(precisions)
        yield f"convergence.recipes has recipes of precision {both} (allowed: one for all)"
    names = Counter(tried.name for tried in section.recipes)
    if twice := [name for name, times in names.items() if times > 1]:
        yield f"convergence.recipes has {', '.join(twice)} more than once (allowed: each name once)"
    for tried, own in zip(section.recipes, named, strict=True):
        if not own:  # What is wrong with it is said where recipes are.
            continue
        if not issubclass(ENGINES.find(own["engine"]).options, UpdateRule):
            engine = f"{tried.recipe}, of engine {own['engine']}"
            yield f"convergence.recipes has {engine} (allowed: of one like resident)"
        for said in Technique.sentences(recipes.of_technique(tried.model_dump(), own)):
            yield f"convergence.recipes has {tried.name}: {said}"


def _variants(config: Configuration, reads_images: bool) -> Iterator[str]:
    """What is wrong with the quantized networks."""
    section = config.quantization
    if section.resnet18 and not section.seeds:
        yield "quantization.seeds is empty, but quantization.resnet18 asks for Part B"
    if not section.seeds or not (section.variants or reads_images):
        return
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
        there = ", ".join(drawable) or "none with int8 logits and one scale for each tensor"
        yield f"quantization.histograms is {section.histograms!r} (allowed: {there})"
