"""Print the grid of the study in results/ with the state of each cell, during or after a run.

What runs is seen by the processes of this machine; for a cell that waits for a lease the holder is
named.
"""

from pathlib import Path
from typing import Any

import psutil
from snakemake.utils import update_config

from scaling.config import stored
from scaling.config.config import asked
from scaling.config.stored import read_config
from scaling.core import command_line, environment, files, grid
from scaling.launch.lease import WAITS
from scaling.terminal import state
from scaling.terminal.estimate import Known
from scaling.terminal.state import LOGS, RESULTS

CONFIG = RESULTS / stored.CONFIG


@command_line.script
def main(config: tuple[Path, ...] = ()) -> None:
    """Print the grid; files of `config` are laid over config/config.yaml before a study's start."""
    sources = [CONFIG] if CONFIG.exists() else [Path("config/config.yaml"), *config]
    study: dict[str, Any] = {}
    for source in sources:
        update_config(study, read_config(source))
    if source != CONFIG:
        study = asked(study)
    found = [process.info for process in psutil.process_iter(["cmdline", "create_time", "cwd"])]
    here = [process for process in found if process["cwd"] == str(Path.cwd())]
    begun = {
        Path(word).relative_to(RESULTS): process["create_time"]
        for process in here
        for option, word in zip(process["cmdline"], process["cmdline"][1:], strict=False)
        if option == "--output" and Path(word).is_relative_to(RESULTS)
    }
    runs_now = any("snakemake" in word for process in here for word in process["cmdline"][:3])
    on_cpu = study["device"] == "cpu" or not environment.visible_gpus()
    known = Known(study, RESULTS, Path("studies"), on_cpu=on_cpu)
    told = state.of(study, begun, known, runs_now or bool(begun))
    print(f"{study['study']} ({source}), {told['head']}\n\n{told['grid'].to_string(index=False)}\n")
    print("\n".join(told["lines"]).encode("ascii", "replace").decode())
    for cell in grid.of(study):
        log = cell.log_path(LOGS)
        if cell.record_path(Path("runs")) in begun and log.exists():
            last = files.log_end(log).splitlines()[-1:]
            print(*(f"{log}\n  {line}" for line in last if line.startswith(WAITS)), sep="\n")
