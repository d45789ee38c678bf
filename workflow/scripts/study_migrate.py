"""Convert a stored study, or results/, to today's schema, with signed records and complete keys.

Repeating it changes nothing. Files keep their times, so that Snakemake makes nothing again.
"""

import copy
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.recipes import RENAMED
from scaling.config.scheme import Scheme
from scaling.config.technique import Technique
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records.kind import TO_DO, opened
from scaling.core.records.kinds import KINDS
from scaling.core.settling import settling
from scaling.registry.update_rule import UpdateRule

STUDIES = Path("studies")
LATER: dict[str, Any] = {
    stored.CONFIG: {
        "quantization": {"variants": [], "resnet18": False},
        "convergence": {"recipes": [], "accuracies": []},
        "synchronization": {"seeds": []},
        "machine": {"check": "off"},
    },
    "run.json": {
        "cell": {"repeat": 0},
        "dataset": {"image_shape": [32, 32, 3]},
        "model": {"options": {}, "flops_per_image": None, "activation_bytes_per_image": None},
        "training": {
            **dict.fromkeys(["recipe_applied", "compiled_batch_sizes", "compiled_graphs"]),
            **{"micro_batches": 1, "measured_seconds": 0.0},
        },
        "memory": {"capacity_bytes": None},
        "epochs": [{"power_capped_seconds": None, "gpu_readings": []}],
        "communication": {"readings": [], "sent_share": 1.0},
        "in_memory": [],
        "device_time": [],
        **dict.fromkeys(["startup", "run_seconds", "shutdown_seconds"]),
    },
    "runs.json": {"result": {"longer": [], "runs": [{"held_out": False}]}},
    "sweep.json": {"rows": [{"launch": "eager"}]},
    "synchronization.json": {"buffer_seconds": [], "agreement": []},
    "quantization.json": {"environment": {}},
}
"""What came later, by the name of a file, with its values where nothing of it was measured.

What a list has here came later in each entry of it.
"""
ENGINES = {"plain": "eager", "tuned": "resident"}
"""The engines of recipes that named none; a plug-in's is called as its recipe."""


TO_ACCURACY = "to_accuracy"
"""The recipe of trainings to an accuracy that were `tuned` with an update of their own."""


def complete(found: Any, later: Any) -> None:
    """Add to `found`, in place, what it lacks of `later`."""
    if isinstance(found, dict) and isinstance(later, dict):
        for key, value in later.items():
            complete(found.setdefault(key, value), value)
    elif isinstance(found, list) and isinstance(later, list):
        for one, value in product(found, later):
            complete(one, value)


def run(record: Any) -> None:
    """Give a run's recipe today's name, and its engine."""
    cell = record["cell"]
    recipe = cell["recipe"] = RENAMED.get(cell["recipe"], cell["recipe"])
    record["training"].setdefault("engine", ENGINES.get(recipe, recipe))
    record.setdefault("settling", settling(record["epochs"]))


def peaks(record: Any) -> None:
    """Mark matrix products as sprints: they took fractions of a second."""
    for row in record["rows"]:
        if row["quantity"] == "matrix_product":
            row.setdefault("state", "sprint")


def configuration(config: Any) -> None:
    """Give recipes today's names and engines, and drop the section `knobs`.

    What trained to an accuracy was recipe `tuned` with another update: a recipe of its own now.
    """
    config.pop("knobs", None)
    int8 = config.get("quantization", {})
    int8.pop("peers", None)
    int8.get("bit_widths", {}).pop("methods", None)
    int8["variants"] = [own for own in int8.get("variants", []) if not other_ranges(own)]
    for own in int8["variants"]:
        without(own, *RANGES)
    grid, options = config.get("grid", {}), config.get("recipes")
    repeats = grid.get("repeats", [])
    for lists in [grid, *(repeats if isinstance(repeats, list) else [])]:
        if "recipes" in lists:
            lists["recipes"] = [RENAMED.get(name, name) for name in lists["recipes"]]
    if options:
        named = {RENAMED.get(name, name): own for name, own in options.items()}
        config["recipes"] = {
            name: own if "base" in own else {"engine": ENGINES.get(name, name), **own}
            for name, own in named.items()
        }
    full = config.get("time_to_accuracy", {})
    update = full.pop("update", None)
    if full.get("gpus") and "recipe" not in full:
        full["recipe"] = TO_ACCURACY if update else "tuned"
    if update and full.get("gpus"):
        tuned = config.setdefault("recipes", {}).get("tuned", {"engine": ENGINES["tuned"]})
        config["recipes"][TO_ACCURACY] = copy.deepcopy(tuned) | update
    if "remedies" in config.get("convergence", {}):
        config["convergence"]["recipes"] = [
            tried(remedy, config.setdefault("recipes", {}))
            for remedy in config["convergence"].pop("remedies")
        ]


def tried(remedy: dict[str, Any], recipes: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of `convergence.recipes` for a remedy, whose update becomes a recipe.

    One of `recipes` with this update is taken, else one is added, which is based on `tuned`.
    """

    def update(own: dict[str, Any]) -> dict[str, Any]:
        return UpdateRule(
            **{key: own[key] for key in UpdateRule.model_fields.keys() & own}
        ).model_dump()

    known = {
        name: update(recipes.get(own.get("base"), {}) | own)
        for name, own in recipes.items()
        if own.get("engine") == ENGINES["tuned"] or own.get("base") == "tuned"
    }
    wanted = update(remedy)
    recipe = next((name for name, own in known.items() if own == wanted), remedy["name"])
    if recipe not in known:
        tuned = known.get("tuned", update({}))
        own = {key: value for key, value in wanted.items() if value != tuned[key]}
        whole = {"fused_norms": False} if wanted["ghost_batch"] else {}
        recipes[recipe] = {"base": "tuned", **own, **whole}
    kept = {key: value for key, value in remedy.items() if key not in UpdateRule.model_fields}
    return {"name": kept.pop("name"), "recipe": recipe, **kept}


def without(found: dict[str, Any], *keys: str) -> None:
    """Take `keys` out of `found`, in place, where they are."""
    for key in keys:
        found.pop(key, None)


RANGES = {"weight_range": "max_abs", "activation_range": "max_abs", "bias_correction": False}
"""Options of a variant, at their defaults, that its `rounding` decides now."""


def other_ranges(scheme: dict[str, Any]) -> bool:
    """Return whether a variant's `RANGES` are others than its `rounding` decides now."""
    wanted = dict(RANGES)
    if scheme.get("rounding") == "gptq":
        wanted |= {"activation_range": "mse", "bias_correction": True}
        wanted["weight_range"] = "output" if scheme.get("weight_scales") == "channel" else "max_abs"
    return not RANGES.keys().isdisjoint(scheme) and (RANGES | scheme) != (scheme | wanted)


def variant(record: Any) -> None:
    """Give a quantized variant today's options; UserError for those that are gone."""
    if other_ranges(record["scheme"]):
        raise UserError(f"the ranges of variant {record['variant']} are no option any more")
    without(record["scheme"], *RANGES)
    record["scheme"] = Scheme.of(record["scheme"], "the scheme").model_dump()
    if record.get("input"):
        without(record["input"], "steps")
    for layer in record.get("layers", []):
        without(layer, "weight_scale_max", "products_bound", "propagated_sqnr_db")
        without(layer, "clipped_share_before_relu", "sqnr_before_relu_db")


def export(record: Any) -> None:
    """Keep the times of one core alone in the record of ONNX files."""
    without(record, "all_threads")
    for network in record["networks"].values():
        without(network, "agreement_ours_percent")
        seconds = network.get("seconds", {})
        without(seconds, "1_all_cores", "16_all_cores")
        for batch in list(seconds):
            seconds[batch.removesuffix("_one_core")] = seconds.pop(batch)


UPGRADES: dict[str, Callable[[Any], None]] = {
    stored.CONFIG: configuration,
    "run.json": run,
    "runs.json": lambda record: complete(record["options"], Technique().model_dump()),
    "peaks.json": peaks,
    # Eight times ResNet-18's first width.
    "synchronization.json": lambda record: record["model"].setdefault(
        "widest_norm", 8 * record["parameters"]["model_width"]
    ),
    "quantization.json": variant,
    "resnet18.json": lambda record: without(record, "ranges", "gpu_speed", "layers"),
    **dict.fromkeys(["export.json", "resnet18_export.json"], export),
}
"""How a record is changed in place beside, by the name of its file."""


def upgraded(name: str, document: Any) -> Any:
    """Return `document`, of a file with this name, with all later additions."""
    made = copy.deepcopy(document)
    complete(made, copy.deepcopy(LATER.get(name)))
    UPGRADES.get(name, lambda _: None)(made)
    return made


def rename_folders(study: Path) -> None:
    """Rename folders of records to today's recipe names, unless such a folder exists."""
    for old, new in RENAMED.items():
        for folder in sorted(study.rglob(f"recipe~{old}")):
            if not (target := folder.with_name(f"recipe~{new}")).exists():
                folder.rename(target)
    trained, own = study / "to_accuracy/recipe~tuned", study / f"to_accuracy/recipe~{TO_ACCURACY}"
    if trained.exists() and "update" in stored.read(study).get("time_to_accuracy", {}):
        trained.rename(own)


def changes(folder: Path) -> dict[Path, Any]:
    """Return those of the study's documents that older code wrote, converted, by their paths.

    In a stored study, which was packed when all records were signed, one that is not is a
    UserError.
    """
    paths = sorted(folder / path for path in stored.own_files(folder))
    opens = {path: opened(path) for path in paths if path.name in KINDS}
    unsigned = [path for path, (_, signed) in opens.items() if not signed]
    if (folder / stored.MANIFEST).exists() and 0 < len(unsigned) < len(opens):
        raise UserError(
            f"{unsigned[0]} has no version and sha256, and other records of its study have: {TO_DO}"
        )
    made = {path: _converted(path, *found) for path, found in opens.items()}
    if (folder / stored.CONFIG).exists():
        config = stored.read(folder)
        completed = upgraded(stored.CONFIG, config)
        made[folder / stored.CONFIG] = completed if completed != config else None
    return {path: document for path, document in made.items() if document}


def _converted(path: Path, record: Any, signed: bool) -> Any:
    """Return a record as it is to be written, None where it is so."""
    kind = KINDS[path.name]
    try:
        made = upgraded(path.name, record)
        if f"recipe~{TO_ACCURACY}" in path.parts:
            made["cell"]["recipe"] = TO_ACCURACY
    except (AttributeError, LookupError, TypeError, ValueError, UserError) as error:
        raise UserError(
            f"{path} is no record of {kind.what} that can be read ({error!r}): {TO_DO}"
        ) from error
    if signed and made == record:
        kind.read(path)
        return None
    return kind.signed(path, made)


@command_line.script
def main(study: str) -> None:
    """Convert `study`, the name of a stored one or a folder laid out like results/."""
    there = [path for path in (STUDIES / study, Path(study)) if study and path.is_dir()]
    folder = there[0] if there else stored.find(STUDIES, study)
    rename_folders(folder)
    changed = changes(folder)
    for path, document in changed.items():
        before = path.stat()
        if path.name == stored.CONFIG:
            files.write_text(path, yaml.safe_dump(document, sort_keys=False))
        else:
            files.write_json(path, document)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    print(f"{folder}: {len(changed)} of {len(stored.own_files(folder))} files are rewritten")
