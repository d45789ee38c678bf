"""Packing a finished study: its records copied, byte for byte, into a folder worth keeping."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from scaling.config import stored
from scaling.config.config import model_options
from scaling.config.stored import CONFIG, MANIFEST
from scaling.config.technique import Technique, by_name
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.grid import recipe_options
from scaling.core.records.dataset import DATASET
from scaling.core.records.kinds import KINDS


def sources(config: dict[str, Any], results: Path, datasets: Path) -> dict[Path, Path]:
    """Find where each file of the study lies now, by its place in the study's folder.

    Logs lie below the working folder as below the study's; runs without one are left as they are.

    A run without a record is left out when the configuration says `partial`; anything else that
    is missing, or that was not made with this configuration, is a UserError.
    """
    records = [*stored.run_records(config), *stored.convergence_records(config)]
    full = stored.full_training_records(config)
    others = [Path(CONFIG), *stored.other_records(config), *stored.backend_records(config)]
    if config["partial"]:
        records = [path for path in records if (results / path).exists()]
    found = {path: results / path for path in [*records, *full, *others]}
    found[Path(MANIFEST)] = datasets / stored.dataset_folder(config) / MANIFEST
    missing = [source for source in found.values() if not source.exists()]
    if missing:
        raise UserError(
            f"study {config['study']} is not finished: it lacks {len(missing)} of its "
            f"{len(found)} files, the first is {missing[0]}; run it to its end, or "
            "to its partial report (--config partial=true) where only runs are missing"
        )
    found |= {log: log for log in stored.run_logs(config) if log.exists()}
    checksum = DATASET.read(found[Path(MANIFEST)])["checksum"]
    for path in records:
        _check(found[path], config, checksum)
    return found


def _check(path: Path, config: dict[str, Any], checksum: str) -> None:
    """Raise UserError where a record was made with another value than the study asks for."""
    record = KINDS[path.name].read(path)
    asked, used = dict(config["training"]), dict(record["training"])
    if "remedy" in record:
        options = by_name(config["convergence"]["remedies"])[record["remedy"]]
        asked |= config["convergence"] | {"options": Technique.of(options).model_dump()}
        used["options"] = record["options"]
    else:
        wanted = recipe_options(config, record["cell"]["recipe"])
        asked |= config["machine"] | {"recipe_options": wanted}
    asked |= {**model_options(config), "dataset checksum": checksum}
    used["dataset checksum"] = record["dataset"]["checksum"]
    for key, value in asked.items():
        # A record need not have all: machine.share is no parameter of a run.
        if used.get(key, value) != value:
            raise UserError(
                f"{path} was made with {key} {used[key]}, but the study asks for {value}: run the "
                "study again, then pack it"
            )


def pack(found: dict[Path, Path], folder: Path, force: bool) -> bool:
    """Copy the files that `sources` found into `folder`, of logs their end; False if there already.

    The folder appears whole or not at all. A study in it that differs is a UserError without
    `force`, and with it is replaced; what else a person keeps there stays.
    """
    # Of what is there, the study's own files, and not the person's.
    own = [CONFIG, MANIFEST, *stored.RECORDS]
    there = stored.own_files(folder)
    if there == set(found) and all(
        (folder / path).read_bytes() == _content(source) for path, source in found.items()
    ):
        return False
    if there and not force:
        raise UserError(
            f"{folder} holds a study with other content: pack under another name, or replace it "
            "with --force (make pack FORCE=1)"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as name:
            fresh = Path(name, "fresh")
            fresh.mkdir()
            if folder.exists():
                shutil.copytree(
                    folder,
                    fresh,
                    ignore=lambda at, _: own if Path(at) == folder else [],
                    dirs_exist_ok=True,
                )
            for path, source in found.items():
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                (fresh / path).write_bytes(_content(source))
            if folder.exists():
                folder.rename(Path(name, "old"))
            fresh.rename(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
    return True


def _content(source: Path) -> bytes:
    return files.log_end(source).encode() if source.suffix == ".log" else source.read_bytes()
