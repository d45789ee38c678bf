"""An edit changes the digests of the cells and scripts that run the edited code, and no others."""

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from scaling.core import code_digest
from scaling.registry.dataset import DATASETS
from scaling.registry.engine import ENGINES
from scaling.registry.model import MODELS
from scaling.registry.quantized_model import BY_MOMENTS, QUANTIZED_MODELS
from scaling.registry.strategy import STRATEGIES

SCRIPTS = Path(__file__).parents[3] / "workflow/scripts"
CELLS = {f"{engine}/{strategy}" for engine in ("eager", "resident") for strategy in ("dp", "ddp")}
MEASURING = {
    *("interconnect_sweep", "peaks_measure", "convergence_train", "synchronization_measure"),
    *("quantize_train", "quantize_evaluate", "dataset_prepare", "machine_check"),
}


def digests(root):
    """The digest of every script, and of every kind of cell."""
    # Not those that are kept by a text, so that only edited files are parsed again.
    for cached in ("digest", "measuring_digest", "_files", "_text"):
        getattr(code_digest, cached).cache_clear()
    found = {path.stem: code_digest.digest(path) for path in root.glob("*.py")}
    model, part_b = MODELS.modules("resnet18-cifar"), QUANTIZED_MODELS.find("tutorial-cnn")
    chosen = {
        "dataset_prepare": DATASETS.modules("images"),
        "interconnect_sweep": model,
        "quantize_train": [part_b.training.module],
        "quantize_evaluate": [part_b.evaluation.module, BY_MOMENTS.module],
    }
    for name in MEASURING:
        found[name] = code_digest.measuring_digest(root / f"{name}.py", *chosen.get(name, ()))
    for cell in CELLS:
        engine, strategy = cell.split("/")
        modules = [
            *ENGINES.modules(engine),
            *STRATEGIES.modules(strategy),
        ]
        modules += MODELS.modules("resnet18-cifar")
        found[cell] = code_digest.measuring_digest(root / "train_run.py", *modules)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the code, and its digests."""
    root = tmp_path_factory.mktemp("code") / "scripts"
    shutil.copytree(SCRIPTS, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root, digests(root)


@contextmanager
def replaced(file, old, new):
    """Within the block the file has another text in the place of one that it has."""
    text = file.read_text()
    assert old in text, file
    file.write_text(text.replace(old, new))
    try:
        yield
    finally:
        file.write_text(text)


@pytest.fixture
def changed(project):
    """A function that adds code to files and says whose digests that changes."""
    root, before = project
    edited = []

    def change(*paths):
        for path in paths:
            file = root / "scaling" / path
            edited.append((file, file.read_text() if file.exists() else None))
            file.write_text((edited[-1][1] or "") + "ENTRY = ADDED = 1\n")
        after = digests(root)
        return {name for name in before if after[name] != before[name]}

    yield change
    for file, text in edited:
        file.unlink() if text is None else file.write_text(text)


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        ("../extras/kernels/norm_kernels.py", {"resident/dp", "resident/ddp"}),
        ("training/step.py", {"resident/dp", "resident/ddp"}),
        ("training/resident.py", {"resident/dp", "resident/ddp"}),
        ("registry/engines/resident.py", {"resident/dp", "resident/ddp"}),
        ("training/eager.py", {"eager/dp", "eager/ddp"}),
        ("training/data_parallel.py", {"eager/dp", "resident/dp"}),
        ("training/distributed_data_parallel.py", {"eager/ddp", "resident/ddp"}),
        ("models/resnet.py", CELLS),
        ("training/worker.py", CELLS),
    ],
)
def test_an_edit_of_the_training_changes_exactly_its_cells(changed, path, cells):
    assert changed(path) & CELLS == cells


def test_a_table_a_claim_or_a_section_of_the_report_changes_no_measurement(changed):
    for folder in ("tables", "claims", "report", "figures"):
        paths = SCRIPTS.joinpath("scaling", folder).rglob("*.py")
        found = changed(*(path.relative_to(SCRIPTS / "scaling") for path in paths))
        assert found
        assert not found & (CELLS | MEASURING | {"train_run"}), folder


TELLING = [
    ("core/numbers.py", "–", "-"),
    ("core/errors.py", "error: {printable", "refused: {printable"),
    ("core/files.py", "ensure_ascii", "indent"),
    ("core/environment.py", "run where there is one", "take a machine with one"),
    ("core/section.py", "perhaps", "maybe"),
    ("core/command_line.py", "{yes,no}", "{no,yes}"),
    ("core/records/run.py", "epochs or their ranks", "ranks or their epochs"),
    ("config/devices.py", "needs GPUs for more", "takes GPUs for more"),
    ("config/recipes.py", "the configuration is wrong", "your configuration is wrong"),
    ("launch/outcome.py", "stopped at the time limit", "ended at the time limit"),
    ("launch/lease.py", "is held by process", "belongs to process"),
    ("launch/launcher.py", "processes are to be spread", "processes shall be spread"),
    ("registry/strategies/dp.py", 'title="DataParallel"', 'title="Data parallel"'),
    ("registry/strategies/ddp.py", "2 * (gpus - 1) / gpus", "3 * (gpus - 1) / gpus"),
    ("tables/speedup.py", "speedup", "acceleration"),
    ("tables/noise.py", "within", "inside"),
    ("claims/q2.py", "finish an epoch sooner", "end an epoch earlier"),
    ("report/overview.py", "Not always faster", "Rarely faster"),
    ("terminal/estimate.py", "one after another", "in turn"),
]
PLAIN, TUNED = {"eager/dp", "eager/ddp"}, {"resident/dp", "resident/ddp"}
RANKS, LARGE, LINK = {"synchronization_measure"}, {"convergence_train"}, {"interconnect_sweep"}
STUDIED = PLAIN | RANKS
LAUNCHED = CELLS | RANKS | LINK | {"machine_check", "peaks_measure"}
MEASURED = [
    ("models/resnet.py", "stride", "strides", STUDIED | TUNED | LARGE | LINK),
    ("../extras/kernels/norm_kernels.py", "BLOCKS = ", "BLOCKS = 1 + ", TUNED),
    ("../extras/kernels/fused.py", "SUMS = 4", "SUMS = 5", TUNED),
    ("data/resident.py", "_flip = padding, flip", "_flip = 1, flip", TUNED | RANKS | LARGE),
    ("data/images.py", "BILINEAR", "NEAREST", {"dataset_prepare"}),
    ("training/eager.py", "shuffle=True, seed", "shuffle=False, seed", STUDIED),
    ("training/eager.py", "cell.seed * 1000", "cell.seed * 100", STUDIED),
    ("training/step.py", "part / size / self._ranks", "part / size", TUNED | RANKS | LARGE),
    ("training/update.py", "STEPS = 3", "STEPS = 5", TUNED | RANKS | LARGE | LINK),
    (
        *("training/distributed_data_parallel.py", "device_ids=devices", "device_ids=None"),
        {"eager/ddp", "resident/ddp"} | LINK,
    ),
    ("training/data_parallel.py", "range(gpus)", "range(1, gpus)", {"eager/dp", "resident/dp"}),
    ("training/evaluation.py", "size: int = 500", "size: int = 50", STUDIED | TUNED | LARGE),
    ("training/worker.py", "manual_seed(spec.cell.seed)", "manual_seed(0)", CELLS),
    ("instruments/peaks.py", "BLOCK_SECONDS = 0.02", "BLOCK_SECONDS = 0.2", {"peaks_measure"}),
    ("instruments/allreduce.py", "/ sweep.iterations", "/ sweep.repeats", LINK),
    ("launch/ranks.py", '"500"', '"5000"', LAUNCHED | LARGE),
    ("launch/measure.py", '"OMP_NUM_THREADS"', '"OMP_THREADS"', LAUNCHED),
    ("convergence/engine.py", "BATCH_SIZE = 2000", "BATCH_SIZE = 200", LARGE),
    ("../extras/bits/gptq.py", "DAMPING = 0.01", "DAMPING = 0.02", {"quantize_evaluate"}),
    ("config/technique.py", "math.sqrt(scale)", "scale", LARGE),
]


def test_twenty_edits_of_what_is_said_make_no_measurement_old(project):
    root, before = project
    for path, old, new in TELLING:
        with replaced(root / "scaling" / path, old, new):
            after = digests(root)
        changed = {name for name in CELLS | MEASURING if after[name] != before[name]}
        assert not changed, path


def test_twenty_edits_of_what_is_measured_make_exactly_their_own_old(project):
    root, before = project
    for path, old, new, own in MEASURED:
        with replaced(root / "scaling" / path, old, new):
            after = digests(root)
        assert {name for name in CELLS | MEASURING if after[name] != before[name]} == own, path


@pytest.mark.parametrize("kind", ["strategies", "engines", "models", "datasets"])
def test_a_new_entry_of_a_registry_changes_no_cell_and_no_script(changed, kind):
    assert changed(f"registry/{kind}/new_one.py") == set()


def test_a_comment_and_a_docstring_anywhere_change_nothing(project):
    root, before = project
    files = list(root.rglob("*.py"))
    texts = [file.read_text() for file in files]
    for file, text in zip(files, texts, strict=True):
        said = re.sub(r'    """(?=\w)', '    """Well. ', text)
        file.write_text(f"{said}# The end.\n")
    try:
        assert digests(root) == before
    finally:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
