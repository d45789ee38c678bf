"""Bring a stored study, or results/, of version 1.0 or later to today's schema.

Repeating it changes nothing. Files keep their times, so that Snakemake makes nothing again.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.technique import Technique
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records.kind import opened
from scaling.core.records.kinds import KINDS
from scaling.registry.update_rule import UpdateRule

STUDIES = Path("studies")


def configuration(config: dict[str, Any]) -> None:
    """Make recipes of `convergence.remedies`, and of a `precision` that they do not have.

    Of repeats that differed from cell to cell the most are asked for.
    """
    if isinstance(repeats := config.get("grid", {}).get("repeats"), list):
        config["grid"]["repeats"] = max([1, *(some["repeats"] for some in repeats)])
    section, recipes = config.get("convergence", {}), config.setdefault("recipes", {})
    if "remedies" in section:
        section["recipes"] = [tried(remedy, recipes) for remedy in section.pop("remedies")]
    if precision := section.pop("precision", None):
        for entry in section.get("recipes", []):
            name = entry["recipe"]
            if with_base(recipes, name).get("precision") != precision:
                entry["recipe"] = f"{name}_{precision}"
                recipes[entry["recipe"]] = {"base": name, "precision": precision}


def with_base(recipes: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a recipe says, and its bases where it says nothing."""
    own = recipes.get(name, {})
    return {**(with_base(recipes, own["base"]) if "base" in own else {}), **own}


def tried(remedy: dict[str, Any], recipes: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of `convergence.recipes` for a remedy, whose update becomes a recipe.

    One of `recipes` with this update is taken, else one is added, which is based on `tuned`.
    """

    def update(own: dict[str, Any]) -> dict[str, Any]:
        given = {key: own[key] for key in UpdateRule.model_fields.keys() & own}
        return UpdateRule(**given).model_dump()

    full = {name: with_base(recipes, name) for name in recipes}
    known = {name: update(own) for name, own in full.items() if own.get("engine") == "resident"}
    wanted = update(remedy)
    recipe = next((name for name, own in known.items() if own == wanted), remedy["name"])
    if recipe not in known:
        tuned = known.get("tuned", update({}))
        own = {key: value for key, value in wanted.items() if value != tuned[key]}
        whole = {"fused_norms": False} if wanted["ghost_batch"] else {}
        recipes[recipe] = {"base": "tuned", **own, **whole}
    kept = {key: value for key, value in remedy.items() if key not in UpdateRule.model_fields}
    return {"name": kept.pop("name"), "recipe": recipe, **kept}


def technique(record: dict[str, Any]) -> None:
    """Add the options that are newer than a technique's record, at their defaults."""
    record["options"] = Technique().model_dump() | record["options"]


UPGRADES: dict[str, Callable[[dict[str, Any]], None]] = {
    stored.CONFIG: configuration,
    "runs.json": technique,
}
"""How a document is brought to today's schema, in place, by the name of its file."""


def converted(path: Path) -> tuple[Any, Any]:
    """Return the document at `path` as it is and as it is today; UserError if it is damaged."""
    document = stored.read(path.parent) if path.name == stored.CONFIG else opened(path)
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
