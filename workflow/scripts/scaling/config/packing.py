"""Packing a finished study: its records copied, byte for byte, into a folder worth keeping."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from scaling.config.stored import (
    CONFIG,
    MANIFEST,
    RECORDS,
    convergence_records,
    optional_records,
    other_records,
    own_files,
    run_records,
)
from scaling.config.technique import by_name, from_options
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.records import RunRecord, read_convergence, read_record


def read_config(path: Path) -> dict[str, Any]:
    """The configuration a study was made with, as the workflow wrote it to `path`."""
    try:
        config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist: run a study first, then pack it") from error
    return config


def sources(config: dict[str, Any], results: Path, datasets: Path) -> dict[Path, Path]:
    """Where each file of the study lies now, by its place in the study's folder.

    A run without a record is left out when the configuration says `partial`; anything else that
    is missing, or that was not made with this configuration, is a UserError.
    """
    remedies = {path: results / path for path in convergence_records(config)}
    runs = {path: results / path for path in run_records(config)} | remedies
    if config["partial"]:
        runs = {path: source for path, source in runs.items() if source.exists()}
    measured = [*other_records(config), *optional_records(config)]
    others = {path: results / path for path in [Path(CONFIG), *measured]}
    others[Path(MANIFEST)] = datasets / config["dataset"]["source"] / MANIFEST
    missing = [source for source in [*runs.values(), *others.values()] if not source.exists()]
    if missing:
        raise UserError(
            f"study {config['study']} is not finished: it lacks {len(missing)} of its "
            f"{len(runs) + len(others)} files, the first is {missing[0]}; run it to its end, or "
            "to its partial report (--config partial=true) where only runs are missing"
        )
    checksum = files.read_json(others[Path(MANIFEST)])["checksum"]
    for path, source in runs.items():
        if path in remedies:
            _check_convergence(source, config, checksum)
        else:
            _check_record(source, read_record(source), config, checksum)
    return runs | others


def _check_record(path: Path, record: RunRecord, config: dict[str, Any], checksum: str) -> None:
    """Raise UserError where the run used another value than the configuration or dataset says."""
    asked = {
        **config["training"],
        **config["machine"],
        "model_width": config["model"]["width"],
        "recipe_options": config["recipes"][record["cell"]["recipe"]],
        "dataset checksum": checksum,
    }
    used = {**record["training"], "dataset checksum": record["dataset"]["checksum"]}
    # A switch that a record does not know came later: it was off.
    off = {name: False for name, value in asked["recipe_options"].items() if value is False}
    used["recipe_options"] = off | used["recipe_options"]
    _check_used(path, asked, used)


def _check_convergence(path: Path, config: dict[str, Any], checksum: str) -> None:
    """The same for a remedy at a global batch."""
    found = read_convergence(path)
    options = by_name(config["convergence"]["remedies"])[found["remedy"]]
    asked = {
        **config["training"],
        **config["convergence"],
        "model_width": config["model"]["width"],
        "options": asdict(from_options(found["remedy"], options)),
        "dataset checksum": checksum,
    }
    used = {**found["training"], "options": found["options"]}
    used["dataset checksum"] = found["dataset"]["checksum"]
    _check_used(path, json.loads(json.dumps(asked)), used)


def _check_used(path: Path, asked: dict[str, Any], used: dict[str, Any]) -> None:
    for key, value in asked.items():
        # A record need not have all: machine.share is no parameter of a run.
        if used.get(key, value) != value:
            raise UserError(
                f"{path} was made with {key} {used[key]}, but the study asks for {value}: run the "
                "study again, then pack it"
            )


def pack(found: dict[Path, Path], folder: Path, force: bool) -> bool:
    """Copy the files that `sources` found into `folder`; False when they are there already.

    The folder appears whole or not at all. A study in it that differs is a UserError without
    `force`, and with it is replaced; what else a person keeps there stays.
    """
    there = own_files(folder)
    if there == set(found) and all(
        (folder / path).read_bytes() == source.read_bytes() for path, source in found.items()
    ):
        return False
    if there and not force:
        raise UserError(
            f"{folder} holds a study with other content: pack under another name, or replace it "
            "with --force (make pack FORCE=1)"
        )
    with _replaced(folder) as fresh:
        if folder.exists():
            shutil.copytree(folder, fresh, ignore=_ignore_own(folder), dirs_exist_ok=True)
        for path, source in found.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, fresh / path)
    return True


def _ignore_own(folder: Path) -> Callable[[str, list[str]], list[str]]:
    """For copytree: what in `folder` is the study's own, not the person's."""
    return lambda at, _: [CONFIG, MANIFEST, *RECORDS] if Path(at) == folder else []


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block succeeds."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as name:
            fresh, old = Path(name, "fresh"), Path(name, "old")
            fresh.mkdir()
            yield fresh
            if folder.exists():
                folder.rename(old)
            try:
                fresh.rename(folder)
            except OSError:
                if old.exists():
                    old.rename(folder)
                raise
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
