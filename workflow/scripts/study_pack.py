"""Pack the study in results/: its configuration and raw records, without weights."""

from itertools import chain
from pathlib import Path
from typing import Any

from scaling.config import stored
from scaling.config.stored import CONFIG, MANIFEST, RESULTS
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records.kind import unsigned

DATASETS, STUDIES = Path("resources/dataset"), Path("studies")


def sources(config: dict[str, Any]) -> dict[Path, Path]:
    """Return {path in the packed folder: path of the file now} for each file of the study.

    Missing logs and traces are left out. With `partial: true`, so are missing records of training.
    """
    records = stored.records(config)
    for kind in stored.TRAININGS if config["partial"] else ():
        records[kind] = [path for path in records[kind] if (RESULTS / path).exists()]
    found = {path: RESULTS / path for path in [*chain(*records.values()), Path(CONFIG)]}
    found[Path(MANIFEST)] = DATASETS / stored.dataset_folder(config) / MANIFEST
    if missing := [source for source in found.values() if not source.exists()]:
        raise UserError(
            f"study {config['study']} lacks {len(missing)} of its {len(found)} files, the first is "
            f"{missing[0]}; run it to its end, or with --config partial=true where runs are missing"
        )
    made = {place: unsigned(place) for place in found.values() if place.suffix == ".json"}
    images = made[found[Path(MANIFEST)]].get("checksum")
    for place, record in made.items():
        if record.get("dataset", {}).get("checksum", images) != images:
            raise UserError(f"{place} is of other images than the study's: run it again, then pack")
    for path in stored.beside_records(config):
        source = path if path.suffix == ".log" else RESULTS / path
        if source.exists():
            found[path] = source
    return found


def pack(found: dict[Path, Path], folder: Path, force: bool) -> None:
    """Copy the files `found` into `folder`, but only the end of each log.

    Raise UserError if `folder` already contains a study, unless `force` replaces it. Other files of
    the folder are kept.
    """
    there = stored.own_files(folder)
    if there and not force:
        raise UserError(f"{folder} holds a study: make pack FORCE=1 replaces it")
    try:
        for path in there:
            (folder / path).unlink()
        for path, source in found.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            log = source.suffix == ".log"
            content = files.log_end(source).encode() if log else source.read_bytes()
            (folder / path).write_bytes(content)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error


@command_line.script
def main(study: str, force: bool = False) -> None:
    """Pack the study `study`. `force` replaces a stored study of this name."""
    config = stored.read(RESULTS)
    if (there := config["study"]) != study:
        raise UserError(f"{RESULTS} holds the study {there}, not {study!r}: pack it by that name")
    found, folder = sources(config), STUDIES / study
    pack(found, folder, force)
    print(f"packed {len(found)} files into {folder}")
    if not (folder / "README.md").exists():
        print(f"write {folder}/README.md: the machine, the date and the exact commands")
