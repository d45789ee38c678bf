"""A digest of the code behind a script follows its meaning, and nothing else."""

import pytest

from scaling.core import code_digest

FILES = {
    "package/__init__.py": "",
    "package/far.py": "import json\n\nLIMIT = 3\n",
    "package/near.py": "def f():\n    from package import far\n    return far\n",
    "package/by_name.py": "from package import far\n",
    "package/alone.py": "",
    "script.py": "import numpy\nfrom package import near\n",
}


@pytest.fixture
def project(tmp_path):
    """`digest(*modules, path=text)` of the script once some files have other texts."""
    versions = iter(range(100))

    def digest(*modules, edited=None):
        folder = tmp_path / str(next(versions))
        for name, text in (FILES | (edited or {})).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return code_digest.digest(folder / "script.py", *modules)

    return digest


@pytest.mark.parametrize(
    ("path", "text", "counts"),
    [
        ("package/far.py", "import json\n\nLIMIT = 4\n", True),
        ("package/near.py", "def f():\n    from package import far\n    return None\n", True),
        ("script.py", "from package import alone\n", True),
        ("package/__init__.py", "import json\n", True),
        ("package/far.py", '"""For."""\nimport json\n# Why.\nLIMIT = (3)\n"""Enough."""\n', False),
        (
            "package/near.py",
            FILES["package/near.py"].replace("\n", '\n    """More."""\n', 1),
            False,
        ),
        ("package/alone.py", "LIMIT = 5\n", False),
        ("package/by_name.py", "LIMIT = 5\n", False),
    ],
)
def test_a_change_of_meaning_changes_the_digest_and_no_other(project, path, text, counts):
    assert (project(edited={path: text}) != project()) == counts


def test_a_module_that_is_imported_by_its_name_counts_where_it_is_named(project):
    edited = {"package/by_name.py": "LIMIT = 5\n"}
    assert project("package.by_name", edited=edited) != project("package.by_name")
