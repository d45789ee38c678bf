"""Bring a stored study, or results/, to today's schema: records signed, configuration completed.

A second time changes nothing. Files keep their times, so that nothing is made again.
"""

import copy
from pathlib import Path

import yaml

from scaling.config import older, stored
from scaling.config.config_file import read_config
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.core.records.kind import opened
from scaling.core.records.kinds import KINDS

STUDIES = Path("studies")


def rewrite_record(path: Path) -> bool:
    """Rewrite a record that older code wrote; returns whether it did."""
    kind, (record, signed) = KINDS[path.name], opened(path)
    before = copy.deepcopy(record)
    try:
        older.UPGRADES.get(path.name, lambda _: None)(record)
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
    completed = older.configuration(config)
    if completed == config:
        return False
    with files.same_times(path):
        files.write_text(path, yaml.safe_dump(completed, sort_keys=False))
    return True


@command_line.script
def main(study: str) -> None:
    """Rewrite `study`, the name of a stored one or a folder laid out as results/ is."""
    folder = STUDIES / study
    if not folder.is_dir():
        folder = Path(study) if study and Path(study).is_dir() else stored.find(STUDIES, study)
    paths = sorted(folder / path for path in stored.own_files(folder))
    rewritten = [path for path in paths if path.name in KINDS and rewrite_record(path)]
    rewritten += [path for path in paths if path.name == stored.CONFIG and rewrite_config(path)]
    print(f"{folder}: {len(rewritten)} of {len(paths)} files are rewritten")
