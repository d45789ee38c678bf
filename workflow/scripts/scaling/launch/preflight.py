"""Check the study and set signal handlers before Snakemake starts its first job."""

import os
import signal
from logging import LogRecord
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from snakemake.logging import logger
from snakemake.utils import update_config
from snakemake_interface_logger_plugins.common import LogEvent

from scaling.config import config as configuration
from scaling.config import stored
from scaling.config.stored import read_config
from scaling.core import grid
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.core.records.kind import DATASET
from scaling.launch.lease import SHARE_VARIABLE
from scaling.registry import registry

OF_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Environment variables of torchrun, which would mislead the measuring processes."""


def accept(workflow: Any, config: dict[str, Any], home: Path, folder: str) -> Path | None:
    """Complete and check `config`. Return the folder of the stored study to report, or None.

    The key `replay` in `config`, if any, names the study; `results` means the folder results/.
    `home` is the project's absolute path. `folder` is a prefix of its paths, "" or ending in "/".
    """
    files = [Path(f"{folder}config/config.yaml"), *map(Path, workflow.configfiles)]
    layers = [*map(read_config, files), workflow.config_settings.config]
    # A module's configuration is its importer's to give, and has only what differs from ours.
    if Path(workflow.basedir) != home:
        layers[1:] = [dict(config)]
    replayed = None
    if "replay" in config:
        replayed = stored.find(Path(f"{folder}studies"), str(config["replay"] or ""))
        layers.insert(1, stored.read(replayed))
        # A stored study is data, perhaps somebody else's, and brings no code.
        ours = {"plugins": config.get("plugins") or []}
        layers.append({"partial": True} if replayed == stored.RESULTS else ours)
    config.clear()
    for layer in layers:
        update_config(config, layer)
    config.pop("replay", None)
    # Snakemake would mix a recipe with another one of its name.
    config["recipes"] = stored.recipes_of(layers)
    paths = config.get("plugins")
    listed = paths if isinstance(paths, list) else []  # Another value is refused by `check`.
    os.environ[registry.VARIABLE] = os.pathsep.join(map(str, listed)).replace("\0", "")
    check(config, replayed)
    # Recipes of engines may be spare, but a study of commands alone that names none is a mistake.
    given, named = stored.recipes_of(layers[1:]), [layer.get("grid") or {} for layer in layers[1:]]
    unnamed = "scaling" in config["parts"] and not any("recipes" in grid for grid in named)
    if given and unnamed and all("command" in recipe for recipe in given.values()):
        raise UserError(f"recipes has {', '.join(given)}, which no key names: give grid.recipes")
    return replayed


def check(config: dict[str, Any], replayed: Path | None) -> None:
    """Check `config`, add defaults of missing keys, and set environment variables for its jobs.

    `replayed` is the folder of the stored study to report, or None.
    """
    try:
        config |= configuration.check(config, reads_images=not replayed)
    except UserError as error:
        used = replayed and read_config(replayed / stored.CONFIG).get("plugins")
        advice = f"; a stored study brings no code: give its plugins {used}, --config 'plugins=[…]'"
        raise UserError(f"{error}{advice if used else ''}") from error
    if not replayed:  # What is measured once for each number of GPUs, or on the most, follows.
        config["grid"]["gpus"] = grid.used_gpus(config)
    elif replayed != stored.RESULTS:
        stored.check(replayed, config)
    for name in OF_LAUNCHERS:
        os.environ.pop(name, None)
    os.environ[SNAKEMAKE_VARIABLE] = str(os.getpid())
    if config["machine"]["share"]:
        os.environ[SHARE_VARIABLE] = "1"
    # PyTorch's default is a folder in /tmp that anyone can make before, with code of theirs.
    compiled = Path("resources/compiled").absolute()
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(compiled))
    os.environ.setdefault("TRITON_CACHE_DIR", str(compiled / "triton"))


def check_inputs(config: dict[str, Any], manifest: Path) -> None:
    """Raise UserError if images or model do not fit `config`. The file `manifest` may be absent."""
    described = DATASET.read(manifest) if manifest.exists() else {}
    configuration.check_images(config, described)
    model, side = config["model"], config["dataset"]["image_size"]
    lab = (model["name"], model["options"]) == (configuration.LAB_MODEL, {})
    if not lab or side != configuration.LAB_SIDE:
        from scaling.models import check as model_check  # Imports PyTorch, which takes seconds.

        model_check.check(config, manifest)


def relay_signals() -> None:
    """After SIGTERM or SIGHUP (closed terminal), run Snakemake's SIGTERM handler in a new thread.

    In the main thread, the handler could wait for a lock that this thread holds (docs/upstream.md).
    """
    theirs: Any = signal.getsignal(signal.SIGTERM)
    signals = SimpleQueue[Any]()

    def start_no_job(record: LogRecord) -> bool:
        # Snakemake logs this event just before it starts jobs.
        if getattr(record, "event", None) == LogEvent.JOB_STARTED:
            raise SystemExit
        return True

    def relay(*signal_and_frame: Any) -> None:
        logger.addFilter(start_no_job)
        signals.put(signal_and_frame)

    Thread(target=lambda: theirs(*signals.get()), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # As under nohup.
            signal.signal(number, relay)


def end_at_sigterm() -> None:
    """Make SIGTERM end this process, in which Snakemake runs one job.

    A handler of SIGTERM that Snakemake sets later does not change this.
    """
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes)

    def wait() -> None:
        while os.read(reads, 1)[0] != signal.SIGTERM:
            pass
        os._exit(128 + signal.SIGTERM)

    Thread(target=wait, daemon=True).start()
