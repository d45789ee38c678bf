# The grid, the configuration and definitions that all rules share. No rules here.
import json
import os
from functools import partial
from pathlib import Path

import yaml
from snakemake.logging import logger
from snakemake.utils import update_config

from scaling.config import stored
from scaling.core.errors import refused
from scaling.registry import registry

# As a module of another workflow, the configuration has only what differs from ours.
complete = read_config(Path(f"{OURS}config/config.yaml"))
update_config(complete, config)
config.update(complete)
# The folder of the stored study to replay, or results/ to report what there is; None to measure.
REPLAY = None
if "replay" in config:
    with refused():
        REPLAY = stored.find(Path(f"{OURS}studies"), str(config["replay"] or ""))
        LAYERS.insert(1, stored.read(REPLAY))
    own = config.get("plugins") or []

    configfile: REPLAY / stored.CONFIG

    # A stored study is data, perhaps somebody else's, and brings no code.
    if REPLAY == stored.RESULTS:
        config["partial"] = True
    else:
        config["plugins"] = own
    del config["replay"]


# Snakemake would mix a recipe with another one of its name.
config["recipes"] = recipes_of(LAYERS)

# Jobs use it too, also on other nodes, as Slurm's jobs read this file. Set before the imports, as
# the allowed values of keys depend on the user's plugins.
os.environ[registry.VARIABLE] = os.pathsep.join(map(str, config.get("plugins") or []))
with refused():
    from scaling.core import grid
    from scaling.core.code_digest import digest
    from scaling.launch import jobs, lease
    from scaling.launch.jobs import Jobs, as_json, measuring
    from scaling.registry import engine as engines
    from scaling.registry.entries import model_code
    from scaling.registry.strategy import STRATEGIES
    from scaling.tables.schema import StudyFiles
    from scaling.terminal.progress import Progress

    TO_SAY = jobs.accept(config, REPLAY)

# Measurements are below RECORDS and DATASET, everything derived from them below RESULTS.
RECORDS = RESULTS = "results"
DATASET = Path("resources/dataset", stored.dataset_folder(config)).as_posix()
LOGS = "logs"
if REPLAY == stored.RESULTS:
    RESULTS, LOGS = "results/partial", "logs/partial"
elif REPLAY:
    RECORDS = DATASET = REPLAY.as_posix()
    RESULTS, LOGS = f"results/replay/{REPLAY.name}", f"logs/replay/{REPLAY.name}"


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


STUDY = config["study"]
# Recipes that are the user's own command.
OWN = {
    name: {"unit": own["unit"], "samples": own["samples"]}
    for name, own in config["recipes"].items()
    if "command" in own
}
JOBS = Jobs(config, workflow)
TIMED = JOBS.timed()
# What measures the machine has a time limit of its own.
OF_MACHINE = {"runtime": max(JOBS.minutes, 15)}
FILES = StudyFiles(config, RECORDS, is_stored=bool(REPLAY))
MODEL = config["model"]["name"]
# The training images; once prepared they are not checked again.
IMAGES = {
    "images": ancient(f"{DATASET}/images.npz"),
    "manifest": f"{DATASET}/manifest.json",
}
# A repeat may run on another machine, so it has a check, peaks and sweeps of its own.
REPEATS = [*map(grid.repeat_folder, range(config["grid"]["repeats"]))]
BEGUN = {repeat: stored.has_runs(Path(RECORDS), repeat) for repeat in REPEATS}


def checked(wildcards):
    """Return the machine check that a measurement of a repeat waits for, if any.

    Runs that began with or without one go on so: other inputs would repeat them.
    """
    repeat = wildcards.get("repeat", "")
    path = f"{RECORDS}/machine{repeat}/check.json"
    wanted = config["machine"]["check"] != "off" and not BEGUN.get(repeat)
    return [path] if wanted or Path(path).exists() else []


# Repeating it (-R machine_check) outdates no measurement.
CHECKED = {"machine": ancient(checked)}

with refused():
    if jobs.begin(
        workflow,
        config,
        TO_SAY,
        manifest=None if REPLAY else Path(IMAGES["manifest"]),
    ):
        PROGRESS = Progress(
            *(workflow, config, RECORDS, RESULTS, str(IMAGES["images"])),
            partial(lease.waits_for, config["device"]),
        )
        logger.addFilter(PROGRESS.begin)
        logger.addHandler(PROGRESS)


onstart:
    jobs.relay_signals()


onsuccess:
    PROGRESS.end(Path(LOGS, "report_render.log"))


onerror:
    PROGRESS.render_partial()
    logger.info(
        "make status says of each cell what it is, and what failed with its log; what there is by "
        "now will be in results/partial/report.html."
    )
