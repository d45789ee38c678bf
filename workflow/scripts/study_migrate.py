"""Bring a stored study, or results/, of version 1.0 or later to today's schema.

Repeating it changes nothing. Files keep their times, so that Snakemake makes nothing again.
"""

import copy
import os
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.technique import Technique
from scaling.core import command_line, files
from scaling.core.records.kinds import KINDS
from scaling.registry.update_rule import UpdateRule

STUDIES = Path("studies")


def configuration(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with recipes in the place of `convergence.remedies` and its `precision`.

    Of repeats that differed from cell to cell the most are asked for.
    """
    made = copy.deepcopy(config)
    if isinstance(repeats := made.get("grid", {}).get("repeats"), list):
        made["grid"]["repeats"] = max([1, *(some["repeats"] for some in repeats)])
    section, recipes = made.get("convergence", {}), made.setdefault("recipes", {})
    if "remedies" in section:
        section["recipes"] = [tried(remedy, recipes) for remedy in section.pop("remedies")]
    if precision := section.pop("precision", None):
        for entry in section.get("recipes", []):
            name = entry["recipe"]
            if with_base(recipes, name).get("precision") != precision:
                entry["recipe"] = f"{name}_{precision}"
                recipes[entry["recipe"]] = {"base": name, "precision": precision}
    return made


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


def converted(path: Path) -> tuple[Any, Any]:
    """Return the document at `path` as it is and as it is today; UserError if it is damaged."""
    if path.name == stored.CONFIG:
        config = stored.read(path.parent)
        return config, configuration(config)
    record = KINDS[path.name].read(path)
    if path.name != "runs.json":
        return record, record
    # A technique has options that are newer than its record, at their defaults.
    return record, record | {"options": Technique().model_dump() | record["options"]}


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
