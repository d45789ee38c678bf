"""Read configuration files and stored studies (configuration, manifest, records).

As a program, this module merges the configuration files in its arguments. If the study measures
only a user's own commands, it prints `commands alone`. Such a study does not need PyTorch.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from scaling.core import files, grid
from scaling.core.errors import UserError, program
from scaling.core.records.kind import MOST_BYTES, VARIANT_PATTERN
from scaling.core.records.run import technique_path

CONFIG_BYTES = 100_000
WHOLE = {"engine", "base", "command"}
"""A recipe with any of these keys is complete. It replaces an earlier recipe of the same name."""
CONFIG, MANIFEST = "config.yaml", "manifest.json"
RESULTS = Path("results")
RECORDS = [
    *("runs", "interconnect", "quantization", "peaks", "experiments", "convergence", "logs"),
    *("machine", "to_accuracy"),
]
"""Folders of records, in results/ and in a stored study."""
MACHINE = Path("machine/check.json")
"""Path of the record of the machine check."""
TRAININGS = ("runs", "convergence", "full_trainings")
"""Kinds of records that may be absent from a partial study."""
KINDS = (*TRAININGS, "interconnect", "peaks", "machine", "quantization", "synchronization")


class Plain(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys, and aliases, which can expand to huge values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="an alias: write its value", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        there: dict[Any, Any] = {}
        for key, _ in node.value:
            if there.setdefault(key.value, key) is not key:
                message = f"the key {key.value} is there twice"
                raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> dict[str, Any]:
    """Return the configuration in the file `path`; raise UserError if the file is invalid."""
    try:
        config = parsed(files.read_text(path, CONFIG_BYTES))
    except ValueError as error:
        raise UserError(f"{path}: invalid configuration file ({error})") from error
    if not isinstance(config, dict):
        raise UserError(f"{path} has no keys: write them as config/README.md says")
    return config


def parsed(text: str) -> Any:
    """Return the parsed YAML `text`; ValueError if it is invalid or has values unknown to JSON."""
    try:
        document = Plain(text).get_single_data()
        json.dumps(document, default=_no_json)  # Also refuses numbers of thousands of digits.
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}{error.problem or error.context}"[:200]) from error
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    return document


def _no_json(value: Any) -> Any:
    raise ValueError(f"{value} is read as a {type(value).__name__}: put it in quotes")


def recipes_of(layers: Iterable[Any]) -> Any:
    """Return the recipes of several configurations, merged in order.

    A recipe with `engine`, `base` or `command` replaces an earlier recipe of the same name. Any
    other recipe changes only the options that it has.
    """
    recipes: dict[str, Any] = {}
    for given in [layer["recipes"] for layer in layers if "recipes" in layer]:
        if not isinstance(given, dict):
            return given
        for name, recipe in given.items():
            earlier = recipes.get(name, {})
            if not isinstance(recipe, dict) or not WHOLE.isdisjoint(recipe):
                recipes[name] = recipe
            elif isinstance(earlier, dict):  # Another value is refused later.
                recipes[name] = earlier | recipe
    return recipes


def find(studies: Path, name: str) -> Path:
    """Return folder `name` in `studies`, or results/ if `name` is "results"; else UserError."""
    if name == RESULTS.name:
        return RESULTS
    there = sorted(path.parent.name for path in studies.glob(f"*/{CONFIG}"))
    if name not in there:
        known = f"there are {', '.join(there)}" if there else "there are none yet: see make pack"
        raise UserError(f"{studies} has no study {name!r}: {known}")
    return studies / name


def read(folder: Path) -> dict[str, Any]:
    """Return the configuration in `folder`; UserError if missing, invalid or a link elsewhere."""
    if not os.path.lexists(folder / CONFIG):
        raise UserError(
            f"{folder} has no study, as it lacks {CONFIG}: make study or make demo runs one"
        )
    return read_config(files.regular(folder / CONFIG, within=folder))


def dataset_folder(config: dict[str, Any]) -> Path:
    """Return the folder of a study's prepared images, relative to the folder of all datasets."""
    section = config["dataset"]
    size = section.get("image_size", 32)
    return Path(section["source"] if size == 32 else f"{section['source']}-{size}")


def beside_records(config: dict[str, Any]) -> dict[Path, int]:
    """Return the maximum size (bytes) of each log and trace allowed in a stored study, by path."""
    runs = grid.of(config)
    logs = {run.log_path(Path("logs")): 50_000_000 for run in runs}
    return logs | {run.trace_path(Path("runs")): grid.TRACE_BYTES for run in runs}


def commands_alone(config: dict[str, Any]) -> bool:
    """Return whether each recipe of the grid is a command of the user."""
    return all("command" in config["recipes"][name] for name in config["grid"]["recipes"])


def records(config: dict[str, Any]) -> dict[str, list[Path]]:
    """Return the paths of a study's records by kind, relative to the study's folder."""
    parts, gpus = config["parts"], config["grid"]["gpus"]
    per_node = config["machine"]["gpus_per_node"] or max(gpus)
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    if "scaling" in parts:
        found["runs"] = [run.record_path(Path("runs")) for run in grid.of(config)]
        several = [count for count in gpus if count > 1]
        for folder in map(grid.repeat_folder, range(config["grid"].get("repeats", 1))):
            if not commands_alone(config):  # They send no messages of ours, and tell no operations.
                found["peaks"].append(Path(f"peaks{folder}/peaks.json"))
                sweeps = [f"interconnect/gpus~{count}{folder}/sweep.json" for count in several]
                found["interconnect"] += map(Path, sweeps)
            if config["machine"]["check"] != "off":
                found["machine"].append(Path(f"machine{folder}/check.json"))
    if "accuracy" in parts:
        found["convergence"] = [
            technique_path(Path("convergence"), tried["name"], global_batch)
            for tried in config["convergence"]["recipes"]
            for global_batch in config["convergence"]["global_batches"]
        ]
    if "time_to_accuracy" in parts:
        full = config["time_to_accuracy"]
        found["full_trainings"] = [
            grid.Cell(
                full["recipe"], "ddp", count, full["global_batch"] // count, seed
            ).record_path(Path("to_accuracy"))
            for count in full["gpus"]
            for seed in full["seeds"]
        ]
    if "int8" in parts:
        seeds, variants = config["quantization"]["seeds"], config["quantization"]["variants"]
        found["quantization"] = [
            Path(f"quantization/seed~{seed}", VARIANT_PATTERN.format(variant=variant["name"]))
            for seed in seeds
            for variant in variants
            if seed in variant.get("seeds", seeds)
        ]
    # On the most GPUs of one machine.
    if "proofs" in parts and (most := min(max(gpus), per_node)) > 1:
        found["synchronization"] = [Path(f"experiments/gpus~{most}/synchronization.json")]
    return found


def own_files(folder: Path) -> set[Path]:
    """Return the paths of a study's files in `folder`, relative to `folder`."""
    tops = [folder / name for name in [CONFIG, MANIFEST, *RECORDS]]
    paths = [path for top in tops for path in [top, *top.glob("**/*")] if path.is_file()]
    return {path.relative_to(folder) for path in paths}


def check(folder: Path, config: dict[str, Any]) -> None:
    """Raise UserError if `folder` lacks files that `config` requires, or has unknown files."""
    by_kind, there, beside = records(config), own_files(folder), beside_records(config)
    wanted = [Path(CONFIG), Path(MANIFEST), *chain(*by_kind.values())]
    trainings = {*chain(*(by_kind[kind] for kind in TRAININGS))}
    # Of what is measured once per repeat, the first repeat suffices.
    optional = {path for path in wanted if "/repeat~" in str(path)} - trainings
    optional |= trainings if config["partial"] else set()
    needed = [path for path in wanted if path not in optional]
    if missing := [path for path in needed if path not in there]:
        partial = ", or pass --config partial=true" if trainings.issuperset(missing) else ""
        lacks = f"{len(missing)} of the {len(needed)} files of this configuration"
        advice = f"replay it without other keys, or restore them{partial}"
        raise UserError(f"{folder} lacks {lacks}, the first is {missing[0]}: {advice}")
    for path, limit in {**dict.fromkeys(wanted, MOST_BYTES), **beside}.items():
        if (folder / path).is_symlink() or (folder / path).exists():
            files.regular(folder / path, limit, within=folder)
    if unknown := sorted(there.difference(beside, wanted)):
        place = folder / unknown[0]
        advice = "replay the study without other keys, or move this file elsewhere"
        raise UserError(f"{place}: not of this configuration: {advice}")


@program
def main() -> None:
    layers = [read_config(Path(path)) for path in filter(None, sys.argv[1:])]
    config = {key: layer[key] for layer in layers for key in layer}
    config["recipes"] = recipes_of(layers)
    with suppress(LookupError, TypeError):  # Wrong keys are refused later.
        if config["parts"] == ["scaling"] and commands_alone(config):
            print("commands alone")
