# The configuration, the grid and definitions that all rules share. No rules here.
import copy
import json
import os
import sys
from functools import partial
from pathlib import Path

import yaml
from snakemake.utils import update_config

# As a module of another workflow this is another folder than the current one.
HOME = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(HOME / "workflow/scripts"))
OURS = "" if HOME == Path.cwd() else f"{HOME}/"
# Locates the scripts, also in jobs on other nodes, which read this file.
os.environ.update(SCALING_STUDY_HOME=str(HOME) if OURS else ".")

from scaling.config import stored
from scaling.core.errors import refused
from scaling.registry import registry

# The folder of the stored study to replay, or results/ to report what there is; None to measure.
REPLAY = None
with refused():
    files = [Path(f"{OURS}config/config.yaml"), *map(Path, workflow.configfiles)]
    LAYERS = [*map(stored.read_config, files), workflow.config_settings.config]
    # A module's configuration is its importer's to give, and has only what differs from ours.
    if Path(workflow.basedir) != HOME:
        LAYERS[1:] = [copy.deepcopy(config)]
    if "replay" in config:
        REPLAY = stored.find(Path(f"{OURS}studies"), str(config["replay"] or ""))
        LAYERS.insert(1, stored.read(REPLAY))
        # A stored study is data, perhaps somebody else's, and brings no code.
        ours = {"plugins": config.get("plugins") or []}
        LAYERS.append({"partial": True} if REPLAY == stored.RESULTS else ours)
config.clear()
for layer in LAYERS:
    update_config(config, layer)
config.pop("replay", None)
# Snakemake would mix a recipe with another one of its name.
config["recipes"] = stored.recipes_of(LAYERS)
# Jobs use it too. Set before the imports, as the values that keys allow depend on plugins.
os.environ[registry.VARIABLE] = os.pathsep.join(map(str, config.get("plugins") or []))
with refused():
    from scaling.core import grid
    from scaling.core.code_digest import digest
    from scaling.launch import lease, preflight
    from scaling.launch.jobs import Jobs, as_json, measuring
    from scaling.registry import engine as engines
    from scaling.registry.entries import DATASETS, model_code
    from scaling.registry.strategy import STRATEGIES
    from scaling.tables.schema import StudyFiles
    from scaling.terminal.progress import Progress

    preflight.accept(config, REPLAY)

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
            preflight.check_images(config, Path(IMAGES["manifest"]))
        waits_for = partial(lease.waits_for, config["device"])
        PROGRESS = Progress(
            workflow, config, RECORDS, RESULTS, IMAGES["dataset"], waits_for
        )
else:
    preflight.end_at_sigterm()


onstart:
    preflight.relay_signals()


onsuccess:
    PROGRESS.end(Path(LOGS, "report_render.log"))


onerror:
    PROGRESS.fail()
