r"""Train large-batch techniques ("remedies") at global batches, and write a record of each.

Each is trained with several learning rates around its rule's, then with the best of them (by
held-out images or training loss) from every seed. The runs follow one another in one process on one
device, with a micro-batch for each GPU that shares the global batch.

    python workflow/scripts/convergence_train.py --global-batches 128 8192 \
        --remedies '{"none": {}, "linear": {"scaling": "linear", "warmup_epochs": 1}}' \
        --dataset resources/dataset/digits/images.npz \
        --manifest resources/dataset/digits/manifest.json --records results/convergence
"""

from pathlib import Path
from typing import Any

import torch

from scaling.config.devices import need_newer_gpu
from scaling.core import code_digest, command_line, environment
from scaling.core.environment import Device
from scaling.core.errors import UserError, program
from scaling.core.records.kind import DATASET
from scaling.core.records.run import TECHNIQUE, technique_path
from scaling.core.training_options import DataOptions
from scaling.data import dataset as data
from scaling.large_batches.experiment import Experiment
from scaling.large_batches.plan import Study
from scaling.launch import lease
from scaling.registry.update_rule import Technique, uneven

OF_A_RUN = {"epochs", "seeds", "factors", "more_factors"}
"""Options of a study that decide which runs there are, and not what one gives."""


class Session(DataOptions):
    """Options of one process, which trains techniques at several global batches."""

    study: Study
    remedies: dict[str, Any]
    """Options of each technique, by name."""
    global_batches: list[int]
    """Global batch sizes."""
    records: Path
    """Folder of the records."""
    device: Device = "auto"
    cpu_threads: int = 1
    """Threads of the process."""
    cache: Path = Path("resources/trained")
    """Folder of finished trainings, which are not repeated."""


@program
def main(argv: list[str] | None = None) -> None:
    """Write runs.json of every technique at every global batch, each as soon as it is complete."""
    session = command_line.parse(Session, argv)
    study, kind = session.study, environment.resolve_device(session.device)
    for odd in uneven(session.global_batches, study.reference_batch, study.gpus):
        raise UserError(
            f"global batch {odd} cannot be shared by {study.gpus} GPUs: take a multiple of that"
        )
    for said in need_newer_gpu(kind, {"*": study.model_dump()}):
        raise UserError(said)
    torch.set_num_threads(session.cpu_threads)
    techniques = {
        name: Technique.of(options, f"remedy {name}") for name, options in session.remedies.items()
    }
    dataset = data.read(session.dataset, session.manifest, study.train_images)
    manifest = DATASET.read(session.manifest)
    facts = {key: manifest[key] for key in ("source", "checksum", "train_images", "test_images")}
    precision: Any = environment.applied_precision(study.precision, kind)
    study = study.model_copy(update={"precision": precision})
    # The images are there before a GPU is leased, which the next job can have at once.
    with lease.device(kind) as device:
        host_info = environment.describe_process(device)
        device_name = torch.cuda.get_device_name(device) if kind == "cuda" else kind
        code = code_digest.digest(Path(__file__), measuring=True)
        # With a run's own options all that decides what it gives.
        identity = [code, study.model_dump(exclude=OF_A_RUN), facts, device_name, torch.__version__]
        for global_batch in session.global_batches:
            experiment = Experiment(study, dataset, global_batch, device, session.cache, identity)
            for name, found in experiment.results(techniques):
                document: Any = {
                    "remedy": name,
                    "global_batch": global_batch,
                    "options": techniques[name].model_dump(),
                    "training": study.model_dump(),
                    "dataset": facts,
                    **found,
                    "environment": host_info | {"ended": environment.now()},
                }
                TECHNIQUE.write(technique_path(session.records, name, global_batch), document)
                host_info["started"] = environment.now()
