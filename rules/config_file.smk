# Paths of this workflow, and checks of YAML that Snakemake would silently accept. No rules here.
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

from scaling.config.config_file import read_config
from scaling.core.errors import refused

with refused():
    for file in workflow.configfiles or [f"{OURS}config/config.yaml"]:
        read_config(Path(file))
