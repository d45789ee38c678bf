"""The configuration, checked before anything runs."""

import math
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from scaling.config.scheme import STAGES, Scheme, scheme_options
from scaling.convergence import plan
from scaling.core.errors import UserError
from scaling.training.run_spec import NEED_A_GPU

LONGEST_SHOWN = 60
WORDS = {"array": "a list", "object": "a section", "boolean": "true or false", "null": "null"}
# JSON Schema takes 1.0 for an integer; in a path 1.0 is not 1.
Validator = validators.extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ).redefine("number", lambda _, value: type(value) in (int, float) and math.isfinite(value)),
)


def check(config: dict[str, Any], schema_path: Path, *, reads_images: bool = True) -> None:
    """Raise UserError with one sentence per mistake: the key, what is wrong, what is allowed.

    A study that no longer reads its images may name a dataset.path that does not exist here.
    """
    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    errors = sorted(Validator(schema).iter_errors(config), key=lambda error: error.json_path)
    sentences = [_sentence(error) for error in errors] or _beyond_schema(config, reads_images)
    if sentences:
        raise UserError("the configuration is wrong: " + "; ".join(sentences))


def _sentence(error: ValidationError) -> str:
    key = _name(list(error.absolute_path))
    wanted: Any = error.validator_value
    schema: Any = error.schema
    entries: Any = error.instance
    shown = repr(entries)
    if len(shown) > LONGEST_SHOWN:
        shown = shown[:LONGEST_SHOWN] + "…"
    match error.validator:
        case "additionalProperties":
            known = schema["properties"]
            unknown = ", ".join(str(name) for name in entries if name not in known)
            return f"{key} has the unknown key {unknown} (allowed: {', '.join(known)})"
        case "required":
            missing = ", ".join(name for name in wanted if name not in entries)
            return f"{key} lacks {missing}"
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            allowed = " or ".join(WORDS.get(kind, f"a {kind}") for kind in kinds)
            allowed = allowed.replace("a integer", "an integer")
            return f"{key} is {shown} (allowed: {_numeral(entries)}{allowed})"
        case "enum":
            return f"{key} is {shown} (allowed: {', '.join(map(str, wanted))})"
        case "minItems":
            return f"{key} is empty (allowed: a list of at least {wanted})"
        case "uniqueItems":
            twice = sorted({str(i) for i in entries if entries.count(i) > 1})
            return f"{key} has {', '.join(twice)} more than once (allowed: each value once)"
        case "minimum":
            return f"{key} is {shown} (allowed: {wanted} or more)"
        case "maximum":
            return f"{key} is {shown} (allowed: {wanted} or less)"
        case "exclusiveMinimum":
            return f"{key} is {shown} (allowed: more than {wanted})"
        case "exclusiveMaximum":
            return f"{key} is {shown} (allowed: less than {wanted})"
        case "multipleOf":
            return f"{key} is {shown} (allowed: multiples of {wanted})"
        case _:
            return f"{key} is {shown}: {error.message}"


def _numeral(value: object) -> str:
    """A hint for 5e-4, which YAML reads as text because it has no decimal point."""
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        number = None
    if number is None:
        return ""
    return f"{number!r} without quotes and with a decimal point, or other "


def _name(path: list[str | int]) -> str:
    if not path:
        return "the configuration"
    keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(keys).removeprefix(".")


def _beyond_schema(config: dict[str, Any], reads_images: bool) -> list[str]:
    """What a schema cannot say: paths exist, and one key fits another."""
    sentences = []
    dataset = config["dataset"]
    grid = config["grid"]
    if dataset["source"] == "images" and dataset["path"] is None:
        sentences.append(
            "dataset.path is null (allowed for images: a folder or archive of train/<class>/*)"
        )
    if dataset["source"] in ("digits", "synthetic") and dataset["path"] is not None:
        sentences.append(
            f"dataset.path is {dataset['path']!r} (allowed for {dataset['source']}: null)"
        )
    elif reads_images and dataset["path"] and not Path(dataset["path"]).expanduser().exists():
        sentences.append(
            f"dataset.path is {dataset['path']!r}, which does not exist "
            "(allowed: a file or folder, from the folder Snakemake works in)"
        )
    if config["device"] == "cpu" and "dp" in grid["strategies"] and max(grid["gpus"]) > 1:
        sentences.append(
            "grid.strategies has dp, which needs GPUs for more than one device "
            "(allowed with device cpu: ddp)"
        )
    per_node = config["machine"]["gpus_per_node"]
    uneven = [n for n in grid["gpus"] if per_node and n > per_node and n % per_node]
    if uneven:
        sentences.append(
            f"grid.gpus has {', '.join(map(str, uneven))} and machine.gpus_per_node is {per_node} "
            "(allowed: numbers of GPUs up to one node's, or multiples of it)"
        )
    convergence = config["convergence"]
    odd = plan.uneven(
        convergence["global_batches"], convergence["reference_batch"], convergence["gpus"]
    )
    if odd:
        sentences.append(
            f"convergence.global_batches has {', '.join(map(str, odd))} and convergence.gpus is "
            f"{convergence['gpus']} (allowed: multiples of it)"
        )
    names = [remedy["name"] for remedy in convergence["remedies"]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sentences.append(
            f"convergence.remedies has {', '.join(twice)} more than once (allowed: each name once)"
        )
    if "tuned" in grid["recipes"]:
        sentences.extend(_switches(config["recipes"]["tuned"], config["device"]))
    return [*sentences, *_variants(config["quantization"], reads_images)]


def _switches(tuned: dict[str, Any], device: str) -> list[str]:
    """What is wrong with the switches of recipe tuned."""
    sentences = [
        f"recipes.tuned.{switch} is true (allowed with device cpu: false)"
        for switch in NEED_A_GPU
        if tuned[switch] and device == "cpu"
    ]
    if tuned["fused_norms"] and not tuned["channels_last"]:
        sentences.append(
            "recipes.tuned.fused_norms is true and channels_last is false "
            "(allowed: false, or channels_last true)"
        )
    return sentences


def _variants(section: dict[str, Any], reads_images: bool) -> list[str]:
    """What is wrong with the variants of a quantized network; a replay may have none."""
    if not section["seeds"]:
        asked = [name for name in ("peers", "resnet18") if section[name]]
        return [
            f"quantization.seeds is empty, but quantization.{name} asks for more of Part B "
            "(allowed: a list of at least 1)"
            for name in asked
        ]
    sentences = []
    schemes: dict[str, Scheme] = {}
    for place, variant in enumerate(section["variants"]):
        key, name = f"quantization.variants[{place}]", variant["name"]
        try:
            scheme = Scheme.of(scheme_options(variant))
        except UserError as error:
            sentences.append(f"{key} ({name}): {error}")
            continue
        strangers = set(variant.get("seeds", [])) - set(section["seeds"])
        if strangers:
            sentences.append(f"{key}.seeds has {min(strangers)} (allowed: those of the section)")
        if name in (*schemes, STAGES[0]):
            sentences.append(f"{key} is called {name} (allowed: a name not taken)")
        schemes[name] = scheme
    if not section["variants"] and reads_images:
        sentences.append("quantization.variants is empty (allowed: a list of at least 1)")
    drawn = section["histograms"]
    if section["variants"] and not sentences:
        first = section["seeds"][0]
        fit = [
            variant["name"]
            for variant in section["variants"]
            if schemes[variant["name"]].has_histograms and first in variant.get("seeds", [first])
        ]
        if drawn not in fit:
            sentences.append(
                f"quantization.histograms is {drawn!r} (allowed: a variant with int8 logits and "
                f"one scale for each tensor, here {', '.join(fit) or 'none'})"
            )
    return sentences
