"""An edit changes the digests of the cells and scripts that run the edited code, and no others."""

import re
import shutil
from pathlib import Path

import pytest

from scaling.core import code_digest
from scaling.registry.model import MODELS
from scaling.registry.recipe import RECIPES
from scaling.registry.strategy import STRATEGIES

SCRIPTS = Path(__file__).parents[3] / "workflow/scripts"
CELLS = {f"{recipe}/{strategy}" for recipe in ("course", "tuned") for strategy in ("dp", "ddp")}
MEASURING = {
    *("interconnect_sweep", "peaks_measure", "convergence_train", "synchronization_measure"),
    *("quantize_train", "quantize_evaluate", "dataset_prepare", "machine_check", "knobs_measure"),
}


def digests(root):
    """The digest of every script, and of every kind of cell."""
    # Not those that are kept by a text, so that only edited files are parsed again.
    for cached in ("digest", "_files", "_text"):
        getattr(code_digest, cached).cache_clear()
    found = {path.stem: code_digest.digest(path) for path in root.glob("*.py")}
    for cell in CELLS:
        recipe, strategy = cell.split("/")
        modules = [*RECIPES.modules(recipe), *STRATEGIES.modules(strategy)]
        modules += MODELS.modules("resnet18-cifar")
        found[cell] = code_digest.digest(root / "train_run.py", *modules)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the code, and its digests."""
    root = tmp_path_factory.mktemp("code") / "scripts"
    shutil.copytree(SCRIPTS, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root, digests(root)


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
        ("models/norm_kernels.py", {"tuned/dp", "tuned/ddp"}),
        ("training/step.py", {"tuned/dp", "tuned/ddp"}),
        ("training/tuned.py", {"tuned/dp", "tuned/ddp"}),
        ("registry/recipes/tuned.py", {"tuned/dp", "tuned/ddp"}),
        ("training/course.py", {"course/dp", "course/ddp"}),
        ("training/data_parallel.py", {"course/dp", "tuned/dp"}),
        ("training/distributed_data_parallel.py", {"course/ddp", "tuned/ddp"}),
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


@pytest.mark.parametrize("kind", ["strategies", "recipes", "models", "datasets"])
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
