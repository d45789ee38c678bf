"""The tree shows the pipeline: small folders, small files, imports that run one way."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "workflow/scripts/scaling"
EXTRAS = LIBRARY.parent / "extras"
ORDER = [
    *("core", "registry", "config", "data", "models", "launch", "training", "instruments"),
    *("convergence", "synchronization", "quantization"),
    *("tables", "published", "audit", "claims", "figures", "report", "terminal"),
]
"""Packages by stage: each imports only those before it."""
DERIVING = ORDER[ORDER.index("tables") :]
SHARED = ["core", "registry", "config"]
"""What both measuring and deriving may import: the two meet in files."""

MODULES = sorted(path for path in LIBRARY.rglob("*.py") if path.name != "__init__.py")


EXTRA_MODULES = sorted(EXTRAS.rglob("*.py"))


def package(path, folder=LIBRARY):
    return path.relative_to(folder).parts[0]


def imported_packages(path):
    """The packages of the library that a module imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("scaling.")}


def test_every_package_has_its_place():
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert packages == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_imports_run_one_way(name):
    allowed = set(ORDER[: ORDER.index(name) + 1])
    if name in DERIVING:
        allowed &= {*SHARED, *DERIVING}
    wrong = {
        f"{path.relative_to(LIBRARY)} imports {other}"
        for path in MODULES
        if package(path) == name
        for other in imported_packages(path) - allowed
    }
    assert not wrong


def test_the_library_imports_no_extra_and_no_extra_another():
    for path in MODULES + EXTRA_MODULES:
        own = f"extras.{path.relative_to(EXTRAS).parts[0]}" if EXTRAS in path.parents else "none"
        used = set(re.findall(r"^ *(?:from|import) (extras\.\w+)", path.read_text(), re.MULTILINE))
        assert used <= {own}, path


def test_no_folder_has_more_than_15_modules_and_no_module_more_than_300_lines():
    modules = MODULES + EXTRA_MODULES
    folders = {path.parent for path in modules}
    full = {folder: len([p for p in modules if p.parent == folder]) for folder in folders}
    assert not {folder: count for folder, count in full.items() if count > 15}
    scripts = list(LIBRARY.parent.glob("*.py"))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules + scripts}
    assert not {path: count for path, count in lines.items() if count > 300}


def test_the_tests_have_the_folders_of_the_library():
    unit = Path(__file__).parent
    folders = {path.relative_to(unit) for path in unit.rglob("*") if path.is_dir()}
    there = {path.relative_to(LIBRARY) for path in LIBRARY.rglob("*") if path.is_dir()}
    there |= {path.relative_to(EXTRAS.parent) for path in [EXTRAS, *EXTRAS.iterdir()]}
    assert {folder for folder in folders if folder.name != "__pycache__"} <= there


def test_tests_of_what_tells_import_what_the_small_environment_has():
    unit = Path(__file__).parent
    measuring = run_path(str(unit / "conftest.py"))["MEASURING"]
    assert set(measuring) == {*ORDER, "extras"} - {*DERIVING, *SHARED}
    telling = [path for path in unit.rglob("*.py") if package(path, unit) not in measuring]
    code = f"""
import sys
from importlib.metadata import packages_distributions
from runpy import run_path
sys.path[:0] = {[str(LIBRARY.parent), str(ROOT / "tests")]}
for path in sys.argv[1:]:
    run_path(path)
found = packages_distributions()
print(*(one for name in sys.modules for one in found.get(name, [])))
"""
    command = [sys.executable, "-c", code, ROOT / "tests/conftest.py", *telling]
    used = subprocess.run(command, capture_output=True, text=True, check=True).stdout.lower()
    lock = (ROOT / "requirements-replay.lock").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    assert "pandas" in used
    # Python itself imports a part of setuptools where that is installed.
    assert {name.replace("_", "-") for name in used.split()} - {"setuptools"} <= pinned


def test_the_picture_of_the_packages_is_that_of_the_code():
    drawing = run_path(str(ROOT / "docs/architecture.py"))["draw"]()
    assert (ROOT / "docs/architecture.svg").read_text(encoding="utf-8") == drawing
