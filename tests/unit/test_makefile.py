"""make in a folder of any name, with names of any characters; programs say what they are given."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES_CODE = """subs/`touch X`$(touch X)$(shell touch X)" 'ü;touch X"""
SAYS = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


@pytest.fixture
def make(tmp_path):
    """A function that runs make in a folder with the Makefile and an environment of its own."""
    folder = tmp_path / "a b's $HOME `x` \"ü"
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (folder / ".venv/lib/python3.11/site-packages").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    for lock in (folder / "requirements.lock", folder / ".venv/requirements.lock"):
        lock.write_text("a\n")
    for name in ("python", "snakemake"):
        (programs / name).write_text(SAYS)
        (programs / name).chmod(0o755)

    def run(*words, **variables):
        return subprocess.run(
            ["make", *words],
            **{"cwd": folder, "env": os.environ | variables, "text": True},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    run.folder = folder
    return run


@pytest.mark.parametrize(
    ("target", "variable"),
    [
        *((name, "STUDY") for name in ("audit", "pack", "replay", "answers", "migrate")),
        *(("compare", "A"), ("compare", "B"), ("status", "CONFIG")),
    ],
)
def test_a_name_reaches_a_program_as_it_is_and_runs_nothing(make, target, variable):
    others = [f"{name}=x" for name in ("A", "B") if target == "compare" and name != variable]
    done = make(target, f"{variable}={NAMES_CODE}", *others)
    assert NAMES_CODE in done.stdout
    assert not list(make.folder.rglob("X"))
    if target != "answers":
        assert done.returncode == 0, done.stdout


def test_a_stored_studys_name_runs_nothing(make):
    (make.folder / "studies/`touch X`").mkdir(parents=True)
    (make.folder / "studies/`touch X`/config.yaml").touch()
    assert "replay=`touch X`" in make("studies").stdout
    assert not list(make.folder.rglob("X"))


def test_the_environment_is_made_in_a_folder_of_any_name(make):
    (make.folder / "requirements.lock").write_text("b\n")
    done = make("env")
    assert done.returncode == 0 and "install\n" in done.stdout, done.stdout
    assert (make.folder / ".venv/requirements.lock").read_text() == "b\n"


def test_a_home_that_cannot_be_written_is_one_sentence(make):
    done = make("replay", "STUDY=x", HOME="/dev/null", XDG_CACHE_HOME="")
    assert done.returncode == 2 and "error: /dev/null/.cache cannot be written" in done.stdout
    assert make("replay", "STUDY=x", HOME="/dev/null", XDG_CACHE_HOME="cache").returncode == 0
