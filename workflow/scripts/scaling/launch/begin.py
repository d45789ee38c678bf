"""Checks before the first job: the configuration, the machine, the files of finished runs."""

import math
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from snakemake.logging import logger

from scaling.config import config as configuration
from scaling.config import stored
from scaling.config.config_file import read_config
from scaling.core import files
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch.lease import SHARE_VARIABLE

WORDS = {"true": True, "false": False}


def accept(config: dict[str, Any], replayed: Path | None) -> list[str]:
    """Report and leave out what this study cannot have; UserError if `config` is wrong.

    `replayed` is the folder of the stored study to replay. Also sets the environment variables that
    tell jobs their Snakemake, where compiled code is kept, and whether CPU jobs may overlap.
    """
    # `--config partial=true` is a string: Snakemake only parses Python's True and False.
    if isinstance(partial := config.get("partial"), str):
        config["partial"] = WORDS.get(partial, partial)
    try:
        configuration.check(config, reads_images=not replayed)
    except UserError as error:
        used = replayed and read_config(replayed / stored.CONFIG).get("plugins")
        advice = f"; a stored study brings no code: give its plugins {used}, --config 'plugins=[…]'"
        raise UserError(f"{error}{advice if used else ''}") from error
    said = configuration.leave_out(config)
    if replayed:
        stored.check(replayed, config)
    os.environ[SNAKEMAKE_VARIABLE] = str(os.getpid())
    if config["machine"]["share"]:
        os.environ[SHARE_VARIABLE] = "1"
    # PyTorch's default is a folder in /tmp that anyone can make before, with code of theirs.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path("resources/compiled").absolute()))
    return said


def begin(
    workflow: Any,
    config: dict[str, Any],
    sentences: list[str],
    *,
    records: str,
    manifest: Path | None,
    needed: list[str],
) -> bool:
    """Print `sentences`; return whether this process is Snakemake itself, not one of its jobs.

    Jobs that Slurm starts parse the rules too. `manifest` is the dataset's, None if nothing is
    trained; `needed` are the inputs of finished runs: if one is gone, Snakemake would make it again
    and then repeat every measurement that depends on it.
    """
    if not workflow.is_main_process:
        _end_at_sigterm()
        return False
    if manifest:
        _look_at_model(config, manifest)
        missing = stored.missing_inputs(Path(records), config, needed)
        if missing and not set(missing) & set(sys.argv):
            raise UserError(
                f"{' and '.join(missing)} is gone, and all would be measured again: make that "
                f"alone first (snakemake {' '.join(missing)}), then nothing is"
            )
        if manifest.exists():
            keep_dates(Path(records), manifest)
    for sentence in sentences:
        logger.info(sentence)
    return True


def keep_dates(records: Path, manifest: Path) -> None:
    """Date the manifest before every record that names its images, and the others before it.

    Snakemake goes by dates, which copies and clocks change: a record counts for what it was
    measured on. One that names no images keeps its place before or after the manifest, unless all
    others name these. Weights are dated before what says that it began when they were trained.
    """
    dates = {path: path.stat().st_mtime for path in _records(records)}
    named, own = {path: _said(path, "checksum") for path in dates}, _said(manifest, "checksum")
    if own not in named.values():
        return
    dated, others = manifest.stat().st_mtime, bool(set(named.values()) - {own, ""})
    stale = [
        path
        for path, images in named.items()
        if images != own and (images or (others and dates[path] < dated))
    ]
    _date(manifest, *(date for path, date in dates.items() if path not in stale))
    for path in stale:
        _date(path, manifest.stat().st_mtime - 1)
    for name, prefix in (("float32.pt", ""), ("resnet18.pt", "resnet18_")):
        for weights in records.glob(f"quantization/seed~*/{name}"):
            trained = _said(weights.with_name(f"{prefix}training.json"), "ended")
            made = [path for path in dates if weights.parent in path.parents]
            made = [path for path in made if path.name.startswith("resnet18") == bool(prefix)]
            if trained and all(_said(path, "started") >= trained for path in made):
                _date(weights, *(dates[path] for path in made))


def _records(folder: Path) -> list[Path]:
    found = [folder / path for path in stored.own_files(folder) if path.suffix == ".json"]
    return [path for path in found if not path.name.endswith("training.json")]


def _date(path: Path, *latest: float) -> None:
    """Date a file no later than any of these."""
    if min(latest, default=math.inf) < path.stat().st_mtime:
        os.utime(path, (min(latest), min(latest)))


def _said(path: Path, key: str) -> str:
    """Return the first text with this key in a JSON file: the checksum of images, a time."""
    with suppress(UserError):
        found = re.search(rf'"{key}": *"([^"]+)"', files.read_text(path))
        return found[1] if found else ""
    return ""


def relay_signals() -> None:
    """Run the scheduler's handler of SIGTERM in a thread, and also when the terminal is closed.

    In the main thread it may wait for a lock that this has: see docs/snakemake_sigterm.md.
    """
    theirs: Any = signal.getsignal(signal.SIGTERM)
    told = SimpleQueue[Any]()

    def tell(*signal_and_frame: Any) -> None:
        theirs.__self__._user_kill = "graceful"  # No job starts before the thread has run.
        told.put(signal_and_frame)

    Thread(target=lambda: theirs(*told.get()), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # As under nohup.
            signal.signal(number, tell)


def _end_at_sigterm() -> None:
    """End this process, the Snakemake of one job, by SIGTERM, whatever handler is set later."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes)

    def wait() -> None:
        while os.read(reads, 1)[0] != signal.SIGTERM:
            pass
        os._exit(128 + signal.SIGTERM)

    Thread(target=wait, daemon=True).start()


def _look_at_model(config: dict[str, Any], manifest: Path) -> None:
    """Raise UserError for a model that cannot be trained on the images."""
    lab = configuration.model_options(config)["model"] == configuration.LAB_MODEL
    if lab and config["dataset"]["image_size"] == configuration.LAB_SIDE:
        return
    from scaling.models.check import check  # Imports PyTorch, which takes seconds.

    check(config, manifest)
