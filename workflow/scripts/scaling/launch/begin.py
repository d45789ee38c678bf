"""What precedes the first job: checks of configuration and finished runs, handling of signals."""

import os
import signal
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from snakemake.logging import logger

from scaling.config import config as configuration
from scaling.config import stored
from scaling.config.stored import read_config
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch.lease import SHARE_VARIABLE

WORDS = {"true": True, "false": False}
LAUNCHERS = ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
"""Variables of torchrun and mpirun, which measuring processes would take for their own."""


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
    and then repeat every measurement that depends on it. Raises UserError for that, for a model
    that cannot be trained on the images, and where another launcher started this process.
    """
    if not workflow.is_main_process:
        _end_at_sigterm()
        return False
    if not os.access(".", os.W_OK):
        raise UserError(f"{Path.cwd()} cannot be written: start in a folder of yours")
    if manifest:
        if others := [name for name in LAUNCHERS if name in os.environ]:
            raise UserError(
                f"the environment has {', '.join(others)}, as torchrun and mpirun set: unset them, "
                "or start without a launcher, as Snakemake starts all processes itself"
            )
        lab = config["model"]["name"] == configuration.LAB_MODEL
        if not lab or config["dataset"]["image_size"] != configuration.LAB_SIDE:
            from scaling.models.check import check  # Imports PyTorch, which takes seconds.

            check(config, manifest)
        missing = stored.missing_inputs(Path(records), config, needed)
        if missing and not set(missing) & set(sys.argv):
            raise UserError(
                f"{' and '.join(missing)} is gone, and all would be measured again: make that "
                f"alone first (snakemake {' '.join(missing)}), then nothing is"
            )
        if manifest.exists():
            stored.keep_dates(Path(records), manifest)
    for sentence in sentences:
        logger.info(sentence)
    return True


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
