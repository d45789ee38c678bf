"""What is wrong with the sections of experiments, although each key is right."""

from collections import Counter
from collections.abc import Iterator

from scaling.config.keys import Configuration
from scaling.config.recipes import of_technique
from scaling.config.scheme import STAGES
from scaling.config.technique import Technique, uneven
from scaling.registry.engine import ENGINES
from scaling.registry.update_rule import UpdateRule


def large_batches(config: Configuration) -> Iterator[str]:
    """What is wrong with the trainings of large batches, and to an accuracy."""
    section, full = config.convergence, config.time_to_accuracy
    if odd := [gpus for gpus in full.gpus if full.global_batch % gpus]:
        yield (
            f"time_to_accuracy.gpus has {', '.join(map(str, odd))} and time_to_accuracy."
            f"global_batch is {full.global_batch} (allowed: numbers that divide it)"
        )
    odd = uneven(section.global_batches, section.reference_batch, section.gpus)
    if section.recipes and odd:
        yield (
            f"convergence.global_batches has {', '.join(map(str, odd))} and convergence.gpus is "
            f"{section.gpus} (allowed: multiples of it)"
        )
    named = [config.recipes.get(tried.recipe, {}) for tried in section.recipes]
    precisions = sorted({own["precision"] for own in named if "precision" in own})
    if len(precisions) > 1:
        yield (
            f"convergence.recipes has recipes of precision {' and '.join(precisions)} (allowed: "
            "one for all, which are compared)"
        )
    names = Counter(tried.name for tried in section.recipes)
    if twice := ", ".join(sorted(name for name, times in names.items() if times > 1)):
        yield f"convergence.recipes has {twice} more than once (allowed: each name once)"
    for tried in section.recipes:
        own = config.recipes.get(tried.recipe)
        if own is None:  # What is wrong with it is said where recipes are.
            continue
        engine = ENGINES.find(own["engine"])
        if not issubclass(engine.options, UpdateRule):
            yield (
                f"convergence.recipes has {tried.recipe}, of engine {engine.name} (allowed: "
                "recipes of an engine with options of the update, like tuned)"
            )
        for said in Technique.sentences(of_technique(tried.model_dump(), own)):
            yield f"convergence.recipes has {tried.name}: {said}"


def variants(config: Configuration, reads_images: bool) -> Iterator[str]:
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
        yield (
            f"quantization.histograms is {section.histograms!r} (allowed: a variant with int8 "
            f"logits and one scale for each tensor, here {', '.join(drawable) or 'none'})"
        )
