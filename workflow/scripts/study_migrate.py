"""Bring a stored study, or results/, of version 2.0 or later to today's schema.

Repeating it changes nothing. Files keep their times, so that Snakemake makes nothing again.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.scheme import Scheme
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records import convergence, machine, quantization, run
from scaling.core.records.kind import DATASET, Kind, unsigned
from scaling.registry.update_rule import Technique

STUDIES = Path("studies")
KINDS: dict[str, Kind] = {
    "run.json": run.RUN,
    "runs.json": convergence.CONVERGENCE,
    "manifest.json": DATASET,
    "check.json": machine.CHECK,
    "sweep.json": machine.SWEEP,
    "peaks.json": machine.PEAKS,
    "synchronization.json": machine.SYNCHRONIZATION,
    "quantization.json": quantization.VARIANT,
}
"""The kind of each record, by the name of its file."""
GONE_OPTIONS: dict[str, Any] = {"weight_range": "max_abs", "activation_range": "max_abs"}
GONE_OPTIONS |= {"unsigned": False, "rounding": "nearest", "bias_correction": False}
"""Options that older variants have, with the value that is the only one now."""
GONE_COLUMNS = [
    *("weight_scale_max", "products_bound", "propagated_sqnr_db"),
    *("clipped_share_before_relu", "sqnr_before_relu_db"),
]
"""What older records have of a layer."""


def configuration(config: dict[str, Any]) -> None:
    """Make recipes of a `convergence.precision` that those there do not have.

    Variants of ranges that are gone are left out. Of repeats that differed from cell to cell the
    most are asked for.
    """
    if isinstance(repeats := config.get("grid", {}).get("repeats"), list):
        config["grid"]["repeats"] = max([1, *(some["repeats"] for some in repeats)])
    int8, section = config.get("quantization", {}), config.get("convergence", {})
    # Bit widths of a stored study are among its variants.
    without(int8, "peers", "bit_widths", "histograms")
    if "variants" in int8:
        int8["variants"] = [own for own in int8["variants"] if not is_gone(own)]
        without(int8["variants"], *GONE_OPTIONS)
    tried, recipes = section.get("recipes", []), config.get("recipes", {})
    without(tried, "noise_scale", "lengths")
    without(section, "accuracies")
    precision = section.pop("precision", None)
    for entry in tried if precision else ():
        name = base = entry["recipe"]
        while "precision" not in recipes[base] and "base" in recipes[base]:
            base = recipes[base]["base"]
        if recipes[base].get("precision") != precision:
            entry["recipe"] = f"{name}_{precision}"
            recipes[entry["recipe"]] = {"base": name, "precision": precision}


def without(found: Any, *keys: str) -> None:
    """Take `keys` out of a dictionary, or of each in a list, in place, where they are."""
    for one in found if isinstance(found, list) else [found]:
        for key in keys:
            one.pop(key, None)


def is_gone(scheme: dict[str, Any]) -> bool:
    """Return whether a variant has another value than there is now."""
    return any(scheme.get(key, value) != value for key, value in GONE_OPTIONS.items())


def technique(record: dict[str, Any]) -> None:
    """Add the options that are newer than a technique's record, at their defaults."""
    record["options"] = Technique().model_dump() | record["options"]


def variant(record: dict[str, Any]) -> None:
    """Give a quantized variant today's options; UserError for those that are gone."""
    if is_gone(record["scheme"]):
        raise UserError(
            f"variant {record['variant']} has options that are gone: remove the records of GPTQ, "
            "of unsigned activations and of other ranges than the largest value's"
        )
    without(record["scheme"], *GONE_OPTIONS)
    record["scheme"] = Scheme.of(record["scheme"], "the scheme").model_dump()
    without(record.get("input") or {}, "steps")
    without(record.get("layers", []), *GONE_COLUMNS)


UPGRADES: dict[str, Callable[[Any], None]] = {
    stored.CONFIG: configuration,
    "runs.json": technique,
    "quantization.json": variant,
}
"""How a document is brought to today's schema, in place, by the name of its file."""


def converted(path: Path) -> tuple[Any, Any]:
    """Return the document at `path` as it is and as it is today; UserError if it is damaged."""
    document = stored.read(path.parent) if path.name == stored.CONFIG else unsigned(path)
    made = copy.deepcopy(document)
    try:
        UPGRADES.get(path.name, lambda _: None)(made)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"{path} cannot be converted ({error!r}): restore it") from error
    return document, made


@command_line.script
def main(study: str) -> None:
    """Convert `study`, the name of a stored one or a folder laid out like results/."""
    there = [path for path in (STUDIES / study, Path(study)) if study and path.is_dir()]
    folder = there[0] if there else stored.find(STUDIES, study)
    paths = [folder / path for path in stored.own_files(folder)]
    found = {path: converted(path) for path in paths if path.name in {stored.CONFIG, *KINDS}}
    changed = {path: after for path, (before, after) in found.items() if after != before}
    for path, document in changed.items():
        times = path.stat()
        if path.name == stored.CONFIG:
            files.write_text(path, yaml.safe_dump(document, sort_keys=False))
        else:
            KINDS[path.name].write(path, document)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    print(f"{folder}: {len(changed)} of {len(paths)} files are rewritten")
