"""Train one run of the grid, or run a user's command that trains it; write run.json.

python workflow/scripts/train_run.py '{"spec": …, "output": "run.json"}'
"""

from pathlib import Path

from scaling.core import command_line
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from scaling.launch import supervisor
from scaling.launch.run_spec import RunSpec
from scaling.registry.engine import ENGINES


@command_line.script
def main(
    spec: RunSpec, output: Path, images: Path | None = None, manifest: Path | None = None
) -> None:
    """Train the run `spec` on `images` with `manifest` (of dataset_prepare.py); write `output`.

    A user's command needs neither images nor manifest.
    """
    spec = spec.resolved()
    if spec.engine == "command":
        record = ENGINES.find(spec.engine).trainer.load()(spec, output.with_name("files"))
        RUN.write(output, record)
    elif images is None or manifest is None:
        raise UserError("images and manifest are missing: dataset_prepare.py writes them")
    else:
        record = supervisor.supervise(spec, images, manifest, output)
    print(supervisor.summary(record))
