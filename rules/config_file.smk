# What Snakemake would read of the configuration's files without a word. No rules here.
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir, "workflow/scripts")))

from scaling.config.config_file import read_config
from scaling.core.errors import UserError

if not Path("workflow/scripts").is_dir():
    sys.exit(
        f"error: rules, images and results are found from {workflow.basedir}: run snakemake there"
    )
try:
    for file in workflow.configfiles or ["config/config.yaml"]:
        read_config(Path(file))
except UserError as error:
    sys.exit(f"error: {error}")
