"""An edit changes the digests of runs and scripts that use the edited code, and no others."""

import re
import shutil
from pathlib import Path
from unittest import mock

import pytest

from scaling.core import code_digest
from scaling.registry.engine import measuring_code
from scaling.registry.entries import DATASETS, MODELS
from scaling.registry.strategy import STRATEGIES

SCRIPTS = Path(__file__).parents[3] / "workflow/scripts"
CELLS = {f"{engine}/{strategy}" for engine in ("eager", "resident") for strategy in ("dp", "ddp")}
MODEL = "resnet18-cifar"
MEASURING = {
    "interconnect_sweep": ["scaling.instruments.allreduce", *MODELS.modules(MODEL)],
    "peaks_measure": ["scaling.instruments.peaks"],
    "convergence_train": ["scaling.large_batches.experiment"],
    "synchronization_measure": ["scaling.synchronization.worker", "scaling.launch.measure"],
    "quantize_train": ["scaling.quantization.training"],
    "quantize_evaluate": ["scaling.quantization.variant"],
    "dataset_prepare": ["dataset_prepare", *DATASETS.modules("images")],
    "machine_check": ["scaling.instruments.machine"],
}
"""Modules of each measuring rule."""


def digests(root):
    """Return the digests of all scripts and of all kinds of runs, by name."""
    # Not those that are kept by a text, so that only edited files are parsed again.
    for cached in ("digest", "_files", "_text"):
        getattr(code_digest, cached).cache_clear()
    found = {path.stem: code_digest.digest(path.stem) for path in root.glob("*.py")}
    for name, modules in MEASURING.items():
        found[name] = code_digest.digest(*modules, measuring=True)
    for cell in CELLS:
        engine, strategy = cell.split("/")
        code = [*measuring_code(engine, MODEL), *STRATEGIES.modules(strategy)]
        found[cell] = code_digest.digest(*code, measuring=True)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the folder of a copy of the code, and the digests of this code."""
    root = tmp_path_factory.mktemp("code") / "scripts"
    shutil.copytree(SCRIPTS, root, ignore=shutil.ignore_patterns("__pycache__"))
    with mock.patch.object(code_digest, "SCRIPTS", root):
        yield root, digests(root)


def changed(project, edits):
    """Return the names of digests that `edits` change. `edits` maps paths to editing functions."""
    root, before = project
    texts = {path: (root / "scaling" / path).read_text() for path in edits}
    made = {path: edit(texts[path]) for path, edit in edits.items()}
    assert [path for path in edits if made[path] == texts[path]] == []
    for path, text in made.items():
        (root / "scaling" / path).write_text(text)
    after = digests(root)
    for path, text in texts.items():
        (root / "scaling" / path).write_text(text)
    return {name for name in before if after[name] != before[name]}


def replaced(old, new):
    return lambda text: text.replace(old, new)


TELLING = [
    ("core/numbers.py", "–", "-"),
    ("core/errors.py", "error: {printable", "refused: {printable"),
    ("core/environment.py", "run on a machine with one", "take a machine with one"),
    ("core/records/run.py", "epochs or their ranks", "ranks or their epochs"),
    ("config/config.py", "needs an engine", "wants an engine"),
    ("launch/outcome.py", "stopped at the time limit", "ended at the time limit"),
    ("registry/strategy.py", "2 * (gpus - 1) / gpus", "3 * (gpus - 1) / gpus"),
    ("tables/ratios.py", "only in A", "just in A"),
    ("terminal/progress.py", "The report is", "A report is"),
]
PLAIN, TUNED = {"eager/dp", "eager/ddp"}, {"resident/dp", "resident/ddp"}
RANKS, LARGE, LINK = {"synchronization_measure"}, {"convergence_train"}, {"interconnect_sweep"}
INT8, VARIANTS = {"quantize_train"}, {"quantize_evaluate"}
STUDIED = PLAIN | RANKS
WRAPPED = CELLS | RANKS | LARGE | LINK
LAUNCHED = CELLS | RANKS | LINK | {"machine_check", "peaks_measure"}
MEASURED = [
    ("models/resnet.py", "stride", "strides", PLAIN | TUNED | LARGE | LINK),
    ("../extras/kernels/norm_kernels.py", "BLOCKS = ", "BLOCKS = 1 + ", TUNED),
    ("data/resident.py", "_flip = padding, flip", "_flip = 1, flip", TUNED | LARGE),
    ("data/images.py", "BILINEAR", "NEAREST", {"dataset_prepare"}),
    ("training/eager.py", "shuffle=True, seed", "shuffle=False, seed", STUDIED),
    ("training/step.py", "part < parts - 1", "part < parts", STUDIED | TUNED | LARGE),
    ("training/foreach_sgd.py", "BUCKET_MB = 1.0", "BUCKET_MB = 2.0", TUNED | LARGE | LINK),
    ("training/resident.py", "options.model_copy", "options.copy", TUNED | LARGE),
    ("training/strategies.py", "device_ids=devices", "device_ids=None", WRAPPED),
    ("training/evaluation.py", "size: int = 500", "size: int = 50", STUDIED | TUNED | LARGE),
    ("training/worker.py", "manual_seed(spec.cell.seed)", "manual_seed(0)", CELLS),
    ("instruments/peaks.py", "BLOCK_SECONDS = 0.02", "BLOCK_SECONDS = 0.2", {"peaks_measure"}),
    ("launch/ranks.py", '"500"', '"5000"', LAUNCHED | LARGE),
    ("launch/measure.py", '"OMP_NUM_THREADS"', '"OMP_THREADS"', LAUNCHED),
    ("large_batches/experiment.py", "IMAGES = 2000", "IMAGES = 200", LARGE),
    ("quantization/training.py", "manual_seed(self.seed)", "manual_seed(0)", INT8),
    ("quantization/network.py", "WORD_BYTES = 4", "WORD_BYTES = 2", VARIANTS),
]


def test_edit_of_messages_or_entries_outdates_nothing(project):
    scaling = project[0] / "scaling"
    names = ["tables/*", "claims/*", "report/*", "registry/en*", "registry/s*"]
    paths = [path for name in names for path in scaling.glob(f"{name}.py")]
    added = {path.relative_to(scaling): lambda text: f"{text}ADDED = 1\n" for path in paths}
    said = {Path(path): replaced(old, new) for path, old, new in TELLING}
    found = changed(project, added | said)
    assert found and not found & (CELLS | MEASURING.keys())


@pytest.mark.parametrize(("path", "old", "new", "own"), MEASURED)
def test_edit_of_measuring_code_outdates_its_own_jobs(project, path, old, new, own):
    assert changed(project, {path: replaced(old, new)}) & (CELLS | MEASURING.keys()) == own


def test_comments_and_docstrings_change_no_digest(project):
    def said(text):
        return re.sub(r'    """(?=\w)', '    """Well. ', text) + "# The end.\n"

    every = [Path("..", path.relative_to(project[0])) for path in project[0].rglob("*.py")]
    assert changed(project, dict.fromkeys(every, said)) == set()
