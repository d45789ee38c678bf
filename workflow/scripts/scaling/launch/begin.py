"""What is looked at before the first job: the configuration, the machine, what is there."""

import os
import sys
from pathlib import Path
from typing import Any

from snakemake.logging import logger

from scaling.config import config as configuration
from scaling.config import stored
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch.lease import SHARE_VARIABLE

WORDS = {"true": True, "false": False}


def accept(config: dict[str, Any], replayed: Path | None) -> list[str]:
    """Say what of `config` is left out, and leave it out; UserError where it is wrong.

    `replayed` is the folder of the study that is replayed. Jobs inherit whom they end with, and
    whether those on a CPU wait for one another.
    """
    # `--config partial=true` gives a text: only Python's True and False are read as truth values.
    if isinstance(partial := config.get("partial"), str):
        config["partial"] = WORDS.get(partial, partial)
    configuration.check(config, reads_images=not replayed)
    said = configuration.leave_out(config)
    if replayed:
        stored.check(replayed, config)
    os.environ[SNAKEMAKE_VARIABLE] = str(os.getpid())
    if config["machine"]["share"]:
        os.environ[SHARE_VARIABLE] = "1"
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
    """Say `sentences` and return whether this is Snakemake's own process, and not that of a job.

    Jobs that Slurm starts read the rules too. `manifest` is that of the images, None where nothing
    is trained; `needed` are the files that finished runs were made with: Snakemake would make again
    what is lost, and measure everything after it.
    """
    if not workflow.is_main_process:
        return False
    if manifest:
        _look_at_model(config, manifest)
        lost = stored.lost(Path(records), config, needed)
        if lost and not set(lost) & set(sys.argv):
            raise UserError(
                f"{' and '.join(lost)} is gone, and all would be measured again: make that alone "
                f"first (snakemake {' '.join(lost)}), then nothing is"
            )
    for sentence in sentences:
        logger.info(sentence)
    return True


def _look_at_model(config: dict[str, Any], manifest: Path) -> None:
    """Refuse a model that cannot be trained on the images; the lab's can."""
    lab = configuration.model_options(config)["model"] == configuration.LAB_MODEL
    if lab and config["dataset"]["image_size"] == configuration.LAB_SIDE:
        return
    from scaling.models.check import check  # It imports PyTorch, which takes seconds.

    check(config, manifest)
