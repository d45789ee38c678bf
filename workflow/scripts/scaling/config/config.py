"""The configuration, checked before anything runs."""

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaling.config import technique
from scaling.config.experiment_keys import Convergence, Quantization
from scaling.config.key_types import Section
from scaling.config.keys import Configuration, Dataset
from scaling.config.scheme import STAGES, Scheme
from scaling.core.errors import UserError
from scaling.registry.dataset import DATASETS
from scaling.registry.recipe import RECIPES
from scaling.registry.strategy import STRATEGIES

LONGEST_SHOWN = 60
ALLOWED = {
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "model_type": "a section",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "greater_than": "more than {gt:g}",
    "less_than": "less than {lt:g}",
    "multiple_of": "multiples of {multiple_of}",
    "too_short": "a list of at least {min_length}",
    "string_pattern_mismatch": "what matches {pattern}",
    "literal_error": "{expected}",
}
"""What is allowed where pydantic finds an error of that type."""


def check(config: dict[str, Any], *, reads_images: bool = True) -> None:
    """Raise UserError with one sentence per mistake: the key, what is wrong, what is allowed.

    A study that no longer reads its images may name a dataset.path that does not exist here.
    """
    try:
        sentences = list(_across_keys(Configuration.model_validate(config), reads_images))
    except ValidationError as invalid:
        errors = sorted(invalid.errors(), key=lambda error: _name(error["loc"]))
        sentences = [_sentence(error["type"], error) for error in errors]
    if sentences:
        raise UserError("the configuration is wrong: " + "; ".join(sentences))


def _sentence(kind: str, error: Any) -> str:
    """Say what is wrong in an error of pydantic's."""
    *section, last = error["loc"]
    if kind == "missing":
        return f"{_name(section)} lacks {last}"
    if kind in ("extra_forbidden", "invalid_key"):
        known = list(_annotation(section).model_fields)
        near = get_close_matches(str(last), known, n=1)
        meant = f", perhaps {near[0]}" if near else ""
        return f"{_name(section)} has the unknown key {last}{meant} (allowed: {', '.join(known)})"
    key, shown = _name(error["loc"]), repr(error["input"])
    if kind not in ALLOWED:
        return f"{key} {error['msg']}"
    context = error.get("ctx", {})
    if kind == "literal_error":
        context = {"expected": context["expected"].replace("'", "").replace(" or ", ", ")}
    allowed = ALLOWED[kind].format(**context)
    if kind.endswith("_type") and type(None) in getattr(_annotation(error["loc"]), "__args__", ()):
        allowed += " or null"
    if len(shown) > LONGEST_SHOWN:
        shown = shown[:LONGEST_SHOWN] + "…"
    shown = "empty" if kind == "too_short" and not error["input"] else shown
    return f"{key} is {shown} (allowed: {_numeral(error['input'])}{allowed})"


def _annotation(path: list[str | int]) -> Any:
    """The type of the key at `path`."""
    kind: Any = Configuration
    for key in path:
        kind = kind.__args__[0] if isinstance(key, int) else kind.model_fields[key].annotation
    return kind


def _name(path: Any) -> str:
    keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(keys).removeprefix(".") or "the configuration"


def _numeral(value: object) -> str:
    """A hint for 5e-4, which YAML reads as text because it has no decimal point."""
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return ""
    if number is None:
        return ""
    return f"{number!r} without quotes and with a decimal point, or other "


def _across_keys(config: Configuration, reads_images: bool) -> Iterator[str]:
    """What is wrong although each key is right: paths exist, and one key fits another."""
    yield from _path(config.dataset, reads_images)
    grid, per_node = config.grid, config.machine.gpus_per_node
    if config.device == "cpu" and max(grid.gpus) > 1:
        allowed = [name for name in STRATEGIES.names() if not STRATEGIES.find(name).needs_gpu]
        for strategy in grid.strategies:
            if strategy not in allowed:
                yield (
                    f"grid.strategies has {strategy}, which needs GPUs for more than one device "
                    f"(allowed with device cpu: {', '.join(allowed)})"
                )
    uneven = [n for n in grid.gpus if per_node and n > per_node and n % per_node]
    if uneven:
        yield (
            f"grid.gpus has {', '.join(map(str, uneven))} and machine.gpus_per_node is {per_node} "
            "(allowed: numbers of GPUs up to one node's, or multiples of it)"
        )
    yield from _remedies(config.convergence)
    for name in grid.recipes:
        yield from _recipe_options(name, getattr(config.recipes, name), config.device)
    yield from _part_b(config.quantization, reads_images)


def _path(dataset: Dataset, reads_images: bool) -> Iterator[str]:
    source, path = DATASETS.find(dataset.source), dataset.path
    if path is None:
        if source.needs_path:
            layout = "train/<class>/*"
            yield f"dataset.path is null (allowed for {source.name}: a folder or tar of {layout})"
    elif "path" not in source.options:
        yield f"dataset.path is {path!r} (allowed for {source.name}: null)"
    elif reads_images and not Path(path).expanduser().exists():
        yield (
            f"dataset.path is {path!r}, which does not exist "
            "(allowed: a file or folder, from the folder Snakemake works in)"
        )


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


def _recipe_options(name: str, section: Section, device: str) -> Iterator[str]:
    recipe = RECIPES.find(name)
    for switch in recipe.gpu_options:
        if getattr(section, switch) and device == "cpu":
            yield f"recipes.{name}.{switch} is true (allowed with device cpu: false)"
    try:
        recipe.options(**section.model_dump())
    except ValueError as error:
        yield f"recipes.{name}.{error}"


def _part_b(section: Quantization, reads_images: bool) -> Iterator[str]:
    """What is wrong with the quantized networks; a replay may have no variants."""
    if not section.seeds:
        for name in ("peers", "resnet18"):
            if getattr(section, name):
                yield (
                    f"quantization.seeds is empty, but quantization.{name} asks for more of Part B "
                    "(allowed: a list of at least 1)"
                )
        return
    if not section.variants:
        if reads_images:
            yield "quantization.variants is empty (allowed: a list of at least 1)"
        return
    sentences, drawable = [], []
    taken = {STAGES[0]}
    for place, variant in enumerate(section.variants):
        key, seeds = f"quantization.variants[{place}]", variant.seeds or section.seeds
        unknown = set(seeds) - set(section.seeds)
        if unknown:
            sentences.append(f"{key}.seeds has {min(unknown)} (allowed: those of the section)")
        if variant.name in taken:
            sentences.append(f"{key} is called {variant.name} (allowed: a name not taken)")
        taken.add(variant.name)
        try:
            scheme = Scheme.of(variant.model_extra or {})
        except UserError as error:
            sentences.append(f"{key} ({variant.name}): {error}")
        else:
            if scheme.has_histograms and section.seeds[0] in seeds:
                drawable.append(variant.name)
    yield from sentences
    if not sentences and section.histograms not in drawable:
        yield (
            f"quantization.histograms is {section.histograms!r} (allowed: a variant with int8 "
            f"logits and one scale for each tensor, here {', '.join(drawable) or 'none'})"
        )
