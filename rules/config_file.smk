# Where this workflow lies, and what Snakemake would read of its files without a word. No rules here.
import os
import sys
from pathlib import Path

# Another one where this is a module of another workflow, whose folder is the current one.
HOME = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(HOME / "workflow/scripts"))
# Files of ours, from the current folder.
OURS = "" if HOME == Path.cwd() else f"{HOME}/"
# Scripts are found by it, those of jobs on other nodes too: they read this file.
os.environ.update(SCALING_STUDY_HOME=str(HOME) if OURS else ".")

from scaling.config.config_file import read_config
from scaling.core.errors import refused

with refused():
    for file in workflow.configfiles or [f"{OURS}config/config.yaml"]:
        read_config(Path(file))
