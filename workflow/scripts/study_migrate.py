"""Convert a stored study, or results/, to today's schema, with signed records and complete keys.

Repeating it changes nothing. Files keep their times, so that Snakemake makes nothing again.
"""

import copy
import re
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

STUDIES = Path("studies")
Rows = list[dict[str, Any]]
LATER: dict[str, Any] = {
    stored.CONFIG: {
        "quantization": {
            **{"variants": [], "peers": [], "resnet18": False},
            "bit_widths": {"weights": [], "activations": [], "both": []},
        },
        "convergence": {"remedies": [], "accuracies": []},
        "time_to_accuracy": {"gpus": []},
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
        "epochs": [{"power_capped_seconds": None, "gpu_readings": []}],
        "communication": {"readings": [], "sent_share": 1.0},
        "device_time": [],
        **dict.fromkeys(["startup", "run_seconds", "shutdown_seconds"]),
    },
    "runs.json": {"result": {"longer": [], "runs": [{"held_out": False}]}},
    "sweep.json": {"rows": [{"launch": "eager"}]},
    "synchronization.json": {"buffer_seconds": [], "agreement": []},
    "quantization.json": {"environment": {}},
    "stages.json": {"environment": {}},
    "resnet18.json": {"ranges": None, "gpu_speed": []},
}
"""What came later, by the name of a file, with its values where nothing of it was measured.

What a list has here came later in each entry of it.
"""
ENGINES = {"plain": "eager", "tuned": "resident"}
"""The engines of recipes that named none; a plug-in's is called as its recipe."""
CAPACITY = r"total capacity of ([\d.]+) GiB"
"""What a GPU's memory holds, as PyTorch says where that was too little."""


def complete(found: Any, later: Any) -> None:
    """Add to `found`, in place, what it lacks of `later`."""
    if isinstance(found, dict) and isinstance(later, dict):
        for key, value in later.items():
            complete(found.setdefault(key, value), value)
    elif isinstance(found, list) and isinstance(later, list):
        for one, value in product(found, later):
            complete(one, value)


def run(record: Any) -> None:
    """Add a run's missing fields, derived from the others."""
    cell = record["cell"]
    recipe = cell["recipe"] = RENAMED.get(cell["recipe"], cell["recipe"])
    record["training"].setdefault("engine", ENGINES.get(recipe, recipe))
    told = re.search(CAPACITY, record["message"] or "")
    record["memory"].setdefault("capacity_bytes", float(told[1]) * 2**30 if told else None)
    record.setdefault("settling", settling(record["epochs"]))
    gpus, readings = cell["gpus"], record["communication"]["readings"]
    record["device_time"] = [_device_time(rank, gpus) for rank in record["device_time"]]
    record.setdefault("in_memory", _in_memory(record["device_time"], readings))
    record["communication"]["readings"] = [one for one in readings if "seconds" not in one]


def _device_time(rank: dict[str, Any], gpus: int) -> dict[str, Any]:
    """Complete one GPU's busy time: it computed whenever it did not communicate."""
    if "busy_seconds" not in rank or "compute_seconds" in rank:
        return rank
    if gpus == 1:
        return {**rank, "compute_seconds": rank["busy_seconds"]}
    note = "computing was not told from communicating"
    return {"rank": rank["rank"], "iterations": 0, "note": note}


def _in_memory(device_time: Rows, readings: Rows) -> Rows:
    """Return the steps in memory, from traced ones or ones timed with and without exchange."""
    traced = [
        {**rank, "seconds": [rank["seconds"]], "seconds_without": None}
        for rank in device_time
        if rank["iterations"]
    ]
    timed = [rank for rank in readings if "seconds_without" in rank]
    return [
        {
            **{key: rank[key] for key in ("rank", "iterations", "seconds")},
            "samples": None,
            "seconds_without_exchange": rank["seconds_without"],
        }
        for rank in {rank["rank"]: rank for rank in [*traced, *timed]}.values()
    ]


def peaks(record: Any) -> None:
    """Mark matrix products as sprints: they took fractions of a second."""
    for row in record["rows"]:
        if row["quantity"] == "matrix_product":
            row.setdefault("state", "sprint")


def synchronization(record: Any) -> None:
    """Add the width of the widest batch norm: eight times ResNet-18's first."""
    record["model"].setdefault("widest_norm", 8 * record["parameters"]["model_width"])


def technique(record: Any) -> None:
    """Add all missing options of a technique."""
    record["options"] = Technique().model_dump() | record["options"]


def variant(record: Any) -> None:
    """Add all missing options of a variant, with a list of its mistakes."""
    record["scheme"] = Scheme.of(record["scheme"], "the scheme").model_dump()


def configuration(config: Any) -> None:
    """Give recipes today's names and engines, and drop the section `knobs`."""
    config.pop("knobs", None)
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


UPGRADES: dict[str, Callable[[Any], None]] = {
    stored.CONFIG: configuration,
    "run.json": run,
    "runs.json": technique,
    "peaks.json": peaks,
    "synchronization.json": synchronization,
    "quantization.json": variant,
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


def records(paths: list[Path], is_stored: bool) -> dict[Path, Any]:
    """Return those of the records at `paths` that older code wrote, converted, by their paths.

    In a stored study, which was packed when all were signed, one that is not is a UserError.
    """
    opens = {path: opened(path) for path in paths}
    unsigned = [path for path, (_, signed) in opens.items() if not signed]
    if is_stored and 0 < len(unsigned) < len(paths):
        raise UserError(
            f"{unsigned[0]} has no version and sha256, and other records of its study have: {TO_DO}"
        )
    made = {path: _converted(path, *found) for path, found in opens.items()}
    return {path: record for path, record in made.items() if record}


def _converted(path: Path, record: Any, signed: bool) -> Any:
    """Return a record as it is to be written, None where it is so."""
    kind = KINDS[path.name]
    try:
        made = upgraded(path.name, record)
    except (AttributeError, LookupError, TypeError, ValueError, UserError) as error:
        raise UserError(
            f"{path} is no record of {kind.what} that can be read ({error!r}): {TO_DO}"
        ) from error
    if signed and made == record:
        kind.read(path)
        return None
    return kind.signed(path, made)


def rewrite_config(path: Path) -> bool:
    """Add missing keys to a configuration; return whether it changed."""
    config = stored.read(path.parent)
    completed = upgraded(stored.CONFIG, config)
    if completed == config:
        return False
    with files.same_times(path):
        files.write_text(path, yaml.safe_dump(completed, sort_keys=False))
    return True


@command_line.script
def main(study: str) -> None:
    """Convert `study`, the name of a stored one or a folder laid out like results/."""
    there = [path for path in (STUDIES / study, Path(study)) if study and path.is_dir()]
    folder = there[0] if there else stored.find(STUDIES, study)
    rename_folders(folder)
    paths = sorted(folder / path for path in stored.own_files(folder))
    is_stored = (folder / stored.MANIFEST).exists()
    rewritten = records([path for path in paths if path.name in KINDS], is_stored)
    for path, record in rewritten.items():
        with files.same_times(path):
            files.write_json(path, record)
    others = [path for path in paths if path.name == stored.CONFIG and rewrite_config(path)]
    print(f"{folder}: {len(rewritten) + len(others)} of {len(paths)} files are rewritten")
