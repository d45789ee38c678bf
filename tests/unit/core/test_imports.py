import os
from pathlib import Path

import pytest

from scaling.core.imports import code_of


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A script that imports `near`, which imports `far` inside a function; `alone` is unused."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "far.py").write_text("import json\n")
    (package / "near.py").write_text("def f():\n    from package import far\n    return far\n")
    (package / "alone.py").write_text("")
    (tmp_path / "script.py").write_text("import numpy\nfrom package import near\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_script_depends_on_what_it_imports_directly_or_not_and_on_nothing_else(scripts):
    assert code_of(Path("script.py")) == [
        "package/__init__.py",
        "package/far.py",
        "package/near.py",
        "script.py",
    ]


def test_training_depends_on_its_recipe_but_not_on_the_tables(monkeypatch):
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    code = code_of(Path("workflow/scripts/train_run.py"))
    names = {os.path.relpath(path, "workflow/scripts") for path in code}
    assert {"train_run.py", "scaling/recipes/course.py", "scaling/worker.py"} <= names
    assert "scaling/timing.py" not in names
