# Paths of this workflow, and checks of YAML that Snakemake would silently accept. No rules here.
import copy
import os
import sys
from pathlib import Path

# As a module of another workflow this is another folder than the current one.
HOME = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(HOME / "workflow/scripts"))
# Path of our files, relative to the current folder.
OURS = "" if HOME == Path.cwd() else f"{HOME}/"
# Locates the scripts, also in jobs on other nodes, which read this file.
os.environ.update(SCALING_STUDY_HOME=str(HOME) if OURS else ".")

from scaling.config.stored import read_config, recipes_of
from scaling.core.errors import refused

with refused():
    LAYERS = [
        read_config(Path(file))
        for file in [f"{OURS}config/config.yaml", *workflow.configfiles]
    ]
LAYERS.append(workflow.config_settings.config)
# A module's configuration is its importer's to give.
if Path(workflow.basedir) != HOME:
    LAYERS[1:] = [copy.deepcopy(config)]
