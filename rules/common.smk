# The configuration, the grid and definitions that all rules share. No rules here.
import json
import os
import sys
from pathlib import Path

import yaml

# As a module of another workflow this is another folder than the current one.
HOME = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(HOME / "workflow/scripts"))
OURS = "" if HOME == Path.cwd() else f"{HOME}/"
# Locates the scripts, also in jobs on other nodes, which read this file.
os.environ.update(SCALING_STUDY_HOME=str(HOME) if OURS else ".")

from scaling.config import stored
from scaling.core import grid
from scaling.core.code_digest import digest
from scaling.core.errors import refused
from scaling.launch import lease, preflight
from scaling.launch.jobs import Jobs, as_json, measuring
from scaling.registry import engine as engines
from scaling.registry.entries import DATASETS, model_code
from scaling.tables.schema import StudyFiles
from scaling.terminal.progress import Progress

# The folder of the stored study to replay, or results/ to report what there is; None to measure.
with refused():
    REPLAY = preflight.accept(workflow, config, HOME, OURS)

# Measurements are below RECORDS and DATASET, everything derived from them below RESULTS.
RECORDS, RESULTS, LOGS = "results", "results", "logs"
DATASET = Path("resources/dataset", stored.dataset_folder(config)).as_posix()
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
    **dict.fromkeys(["recipe", "strategy", "remedy"], r"\w+"),
    **dict.fromkeys(["gpus", "batch_size", "global_batch", "seed"], r"\d+"),
    repeat=r"|/repeat~[1-9]\d*",


STUDY, MODEL = config["study"], config["model"]["name"]
JOBS = Jobs(config, workflow, RECORDS)
TIMED = JOBS.timed()
FILES = StudyFiles(config, RECORDS, is_stored=bool(REPLAY))
# The training images; once prepared they are not checked again.
IMAGES = {
    "dataset": ancient(f"{DATASET}/images.npz"),
    "manifest": f"{DATASET}/manifest.json",
}
# Of each repeat. Repeating it (-R machine_check) outdates no measurement.
CHECKED = {"machine": ancient(JOBS.machine_check)}

if workflow.is_main_process:
    with refused():
        if not REPLAY:
            preflight.check_inputs(config, Path(IMAGES["manifest"]))
        places = RECORDS, RESULTS, IMAGES["dataset"]
        PROGRESS = Progress(workflow, config, *places, lease.waits_for)
else:
    preflight.end_at_sigterm()


onstart:
    preflight.relay_signals()


onsuccess:
    PROGRESS.end(Path(LOGS, "report_render.log"))


onerror:
    PROGRESS.fail()
