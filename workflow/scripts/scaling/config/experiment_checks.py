"""What is wrong with the sections of experiments, although each key is right."""

from collections import Counter
from collections.abc import Iterator

from scaling.config import technique
from scaling.config.keys import Configuration
from scaling.config.scheme import STAGES


def large_batches(config: Configuration) -> Iterator[str]:
    """What is wrong with the trainings of large batches, and to an accuracy."""
    section, full = config.convergence, config.time_to_accuracy
    if uneven := [gpus for gpus in full.gpus if full.global_batch % gpus]:
        yield (
            f"time_to_accuracy.gpus has {', '.join(map(str, uneven))} and time_to_accuracy."
            f"global_batch is {full.global_batch} (allowed: numbers that divide it)"
        )
    uneven = technique.uneven(section.global_batches, section.reference_batch, section.gpus)
    if section.remedies and uneven:
        yield (
            f"convergence.global_batches has {', '.join(map(str, uneven))} and convergence.gpus is "
            f"{section.gpus} (allowed: multiples of it)"
        )
    names = Counter(remedy.name for remedy in section.remedies)
    if twice := ", ".join(sorted(name for name, times in names.items() if times > 1)):
        yield f"convergence.remedies has {twice} more than once (allowed: each name once)"


def variants(config: Configuration, reads_images: bool) -> Iterator[str]:
    """What is wrong with the quantized networks."""
    section = config.quantization
    for name in ("peers", "resnet18"):
        if getattr(section, name) and not section.seeds:
            yield f"quantization.seeds is empty, but quantization.{name} asks for Part B"
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
