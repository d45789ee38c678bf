# The grid, the configuration and the helpers that all rules share. No rules here.
import json
import math
import os
from functools import cache
from pathlib import Path

import psutil
from snakemake.logging import logger
from snakemake.utils import update_config

from scaling.config import stored
from scaling.core import errors, plugins
from scaling.core.errors import refused
from scaling.launch.lease import SHARE_VARIABLE

# A workflow that has this one as a module says what differs from our configuration.
complete = read_config(Path(f"{OURS}config/config.yaml"))
update_config(complete, config)
config.update(complete)
# The folder of the stored study that is replayed, None where a study is measured.
REPLAY = None
if "replay" in config:
    with refused():
        REPLAY = stored.find(Path(f"{OURS}studies"), str(config["replay"] or ""))

    configfile: REPLAY / stored.CONFIG

    del config["replay"]


# `--config partial=true` gives a text: only Python's True and False are read as truth values.
if isinstance(config.get("partial"), str):
    config["partial"] = {"true": True, "false": False}.get(
        config["partial"], config["partial"]
    )

# Jobs look there too, on other nodes as well: Slurm's read this file. Set before the imports, as
# what a configuration may hold depends on the user's own entries.
os.environ[plugins.VARIABLE] = os.pathsep.join(map(str, config.get("plugins") or []))
with refused():
    from scaling.config import config as configuration
    from scaling.config.knobs import Knobs
    from scaling.core import code_digest, command_line, grid
    from scaling.launch.begin import begin
    from scaling.launch.jobs import Jobs
    from scaling.registry import model as models
    from scaling.registry.dataset import DATASETS
    from scaling.registry.quantized_model import QUANTIZED_MODELS
    from scaling.registry.recipe import RECIPES
    from scaling.registry.strategy import STRATEGIES
    from scaling.tables import schema
    from scaling.terminal.progress import Progress

    configuration.check(config, reads_images=not REPLAY)
    TO_SAY = configuration.leave_out(config)
    if REPLAY:
        stored.check(REPLAY, config)

# What jobs inherit: whom they end with, and whether those on a CPU wait for one another.
os.environ[errors.SNAKEMAKE_VARIABLE] = str(os.getpid())
if config["machine"]["share"]:
    os.environ[SHARE_VARIABLE] = "1"
RUNS = grid.of(config)
MODEL = configuration.model_options(config)
IMAGE_SIZE = config["dataset"].get("image_size", 32)
STUDY = config["study"]
# What is measured lies below RECORDS and DATASET, what is derived from it below RESULTS.
if REPLAY:
    RECORDS = DATASET = REPLAY.as_posix()
    RESULTS = f"results/replay/{REPLAY.name}"
    LOGS = f"logs/replay/{REPLAY.name}"
else:
    RECORDS = RESULTS = "results"
    DATASET = Path("resources/dataset", stored.dataset_folder(config)).as_posix()
    LOGS = "logs"


pathvars:
    records=RECORDS,
    results=RESULTS,
    logs=LOGS,


wildcard_constraints:
    study=r"[^/]+",
    recipe=r"\w+",
    strategy=r"\w+",
    gpus=r"\d+",
    batch_size=r"\d+",
    seed=r"\d+",
    repeat=r"|/repeat~[1-9]\d*",
    remedy=r"\w+",
    global_batch=r"\d+",


def digest(script, *modules):
    """A parameter that changes when the code behind a rule's script does; see `code_digest`."""
    return code_digest.digest(HOME / f"workflow/scripts/{script}.py", *modules)


def measuring(script, *modules):
    """A parameter that changes when code does that decides what a rule's script measures."""
    path = HOME / f"workflow/scripts/{script}.py"
    return code_digest.measuring_digest(path, *modules)


@cache
def cell_code(recipe, strategy):
    """A digest of the code that trains a cell: with its recipe, its strategy and the model."""
    modules = [*RECIPES.modules(recipe), *STRATEGIES.modules(strategy)]
    return measuring("train_run", *modules, *models.code(MODEL["model"]))


def options(section, *keys):
    """The values of a section of the configuration as options of a script: of `keys`, or all."""
    return command_line.options({key: section[key] for key in keys or section})


# What every training has, of the section `training` and of the model of the lab.
TRAINING_KEYS = ["learning_rate", "momentum", "weight_decay"]
TRAINING_KEYS += ["crop_padding", "horizontal_flip"]
TRAINING = {"device": config["device"], "model_width": config["model"]["width"]}
TRAINING |= {key: config["training"][key] for key in TRAINING_KEYS}
LIMITS = ["cpu_threads", "time_limit_seconds", "collective_timeout_seconds"]
# What it trains on; the images are not looked at again once they are there.
IMAGES = {
    "images": ancient(f"{DATASET}/images.npz"),
    "manifest": f"{DATASET}/manifest.json",
}
# What measures waits for the look at the machine; another look (-R machine_check) makes none old.
MACHINE = f"{RECORDS}/{stored.MACHINE}"
CHECKED = {"machine": ancient(MACHINE)}
if config["machine"].get("check") == "off":
    CHECKED = {}

with refused():
    if begin(
        workflow,
        config,
        TO_SAY,
        records=RECORDS,
        manifest=None if REPLAY else Path(IMAGES["manifest"]),
        needed=[*CHECKED.values(), IMAGES["images"]],
    ):
        PROGRESS = Progress(workflow, config, RECORDS, RESULTS)
        logger.addHandler(PROGRESS)


def quantization_code(script, model, part, *modules):
    """A digest of a script with the module that trains or evaluates one model."""
    return measuring(
        script, getattr(QUANTIZED_MODELS.find(model), part).module, *modules
    )


def single_gpu_run(strategy):
    """The place of a strategy's runs on one GPU; recipe, batch, seed and repeat are wildcards."""
    return grid.RUN_PATTERN.replace("{strategy}", strategy).replace("{gpus}", "1")


JOBS = Jobs(config, workflow)
timed_threads = JOBS.threads
TIMED = JOBS.timed()


onsuccess:
    PROGRESS.end(Path(LOGS, "report_render.log"))


onerror:
    logger.info(
        "make status says of each cell what it is, and what failed with its log."
    )
