"""Bring a stored study, or results/, to today's schema: records signed, configuration completed.

A second time changes nothing. Files keep their times, so that nothing is made again.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from scaling.config import stored
from scaling.config.config_file import read_config
from scaling.config.scheme import Scheme
from scaling.config.technique import Technique
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records import older
from scaling.core.records.kind import opened
from scaling.core.records.kinds import KINDS

STUDIES = Path("studies")
LATER: list[tuple[str, str, Any]] = [
    ("quantization", "variants", []),
    ("quantization", "bit_widths", {"weights": [], "activations": [], "both": []}),
    ("quantization", "peers", []),
    ("quantization", "resnet18", False),
    ("convergence", "remedies", []),
    ("convergence", "accuracies", []),
    ("time_to_accuracy", "gpus", []),
    ("synchronization", "seeds", []),
    ("knobs", "gpus", []),
    ("machine", "check", "off"),
]
"""Each key that came later, and its value where nothing of it was measured."""


def convergence(record: Any) -> None:
    """Give a technique's options those that came later, and its runs what they did not do."""
    for option, value in Technique().model_dump().items():
        record["options"].setdefault(option, value)
    if result := record["result"]:
        result.setdefault("longer", [])
        for one in result["runs"]:
            one.setdefault("held_out", False)


def variant(record: Any) -> None:
    """Give a variant all options of a scheme, with a list of its mistakes."""
    record["scheme"] = Scheme.of(record["scheme"], "the scheme").model_dump()
    record.setdefault("environment", {})


UPGRADES: dict[str, Callable[[Any], None]] = {
    **older.UPGRADES,
    "runs.json": convergence,
    "quantization.json": variant,
}


def configuration(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with the keys that came later: what a study did not know it left out."""
    found = dict(config)
    for section, key, value in LATER:
        found[section] = {key: value} | (found.get(section) or {})
    return found


def rewrite_record(path: Path) -> bool:
    """Rewrite a record that older code wrote; returns whether it did."""
    kind, (record, signed) = KINDS[path.name], opened(path)
    before = copy.deepcopy(record)
    try:
        UPGRADES.get(path.name, lambda _: None)(record)
    except (AttributeError, LookupError, TypeError, ValueError, UserError) as error:
        raise UserError(
            f"{path} is no record of {kind.what} that can be read ({error!r}): restore it, or "
            "delete it so that it is made again"
        ) from error
    if signed and record == before:
        kind.read(path)
        return False
    with files.same_times(path):
        kind.write(path, record)
    return True


def rewrite_config(path: Path) -> bool:
    """Write what older studies did not know into a configuration; returns whether it did."""
    config = read_config(path)
    completed = configuration(config)
    if completed == config:
        return False
    with files.same_times(path):
        files.write_text(path, yaml.safe_dump(completed, sort_keys=False))
    return True


@command_line.script
def main(study: str) -> None:
    """Rewrite `study`, the name of a stored one or a folder laid out as results/ is."""
    there = [path for path in (STUDIES / study, Path(study)) if study and path.is_dir()]
    folder = there[0] if there else stored.find(STUDIES, study)
    paths = sorted(folder / path for path in stored.own_files(folder))
    rewritten = [path for path in paths if path.name in KINDS and rewrite_record(path)]
    rewritten += [path for path in paths if path.name == stored.CONFIG and rewrite_config(path)]
    print(f"{folder}: {len(rewritten)} of {len(paths)} files are rewritten")
