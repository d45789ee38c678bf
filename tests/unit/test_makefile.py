"""Make in folders with any name, and with any characters in arguments."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CODE = """subs/`touch X`$(touch X)$(shell touch X)" 'ü;touch X"""


@pytest.fixture
def make(tmp_path):
    """Return a function that runs make in a folder, whose environment is a stand-in."""
    folder = tmp_path / "a b's $HOME `x` \"ü"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/lib/python3/site-packages").mkdir(parents=True)
    shutil.copy(Path(__file__).parents[2] / "Makefile", folder)
    for name in ("requirements.lock", ".venv/requirements.lock"):
        (folder / name).write_text("a\n")
    for name in ("python", "snakemake", "timeout"):
        (folder / ".venv/bin" / name).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (folder / ".venv/bin" / name).chmod(0o755)

    def run(*words, **variables):
        # Not as a part of the make that runs the tests.
        environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        settings = {"cwd": folder, "env": environment | variables, "text": True}
        done = subprocess.run(["make", *words], **settings, capture_output=True)
        assert not list(folder.rglob("X"))
        return done.returncode, done.stdout

    run.folder = folder
    return run


def test_environment_without_an_index_of_packages_is_refused(make):
    (make.folder / "requirements.lock").write_text("b\n")
    pip = "#!/bin/sh\ncase $* in *'pip index'*) exec sleep 60;; *) touch installed;; esac\n"
    (make.folder / ".venv/bin/python").write_text(pip)
    hasty = '#!/bin/sh\nshift\nexec /usr/bin/timeout 1 "$@"\n'
    (make.folder / ".venv/bin/timeout").write_text(hasty)
    status, said = make("env")
    assert status == 2 and said.startswith("error: pip reaches no index") and said.count("\n") == 1
    assert not (make.folder / "installed").exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("study CONFIG=no.yaml", "there is no file no.yaml here"),
        ("study BASE=no.yaml", "there is no file no.yaml here"),
        ("study STUDY=mine.yaml", "study takes its configuration as CONFIG=mine.yaml"),
        *((f"{name} STUDY=one", f"{name} reads results/, not") for name in ("report", "status")),
        ("replay STUDY=no", "studies/ has no study no: there are one"),
        ("answers STUDY=no", "studies/ has no study no: there are one"),
        ("answers FORM=Q9", "there is no form Q9"),
        ("compare A=one", "compare takes two studies"),
        *((name, f"{name} takes a study") for name in ("audit", "pack", "replay")),
    ],
)
def test_arguments_are_checked_before_installing(make, call, said):
    shutil.rmtree(make.folder / ".venv")
    (make.folder / "studies/one").mkdir(parents=True)
    (make.folder / "studies/one/config.yaml").touch()
    status, told = make(*call.split())
    assert status == 2 and told.startswith(f"error: {said}") and told.count("\n") == 1
    assert not list(make.folder.glob(".venv*"))


def test_site_has_a_link_to_each_report(make):
    for name in ("one", "two"):
        (make.folder / "studies" / name).mkdir(parents=True)
        (make.folder / "studies" / name / "config.yaml").touch()
    report = make.folder / "results/replay/one/report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<p>\n<h1>How fast?</h1>\n")
    assert make("site")[0] == 0
    assert (make.folder / "site/replay/one/report.html").read_text() == report.read_text()
    links = (make.folder / "site/index.html").read_text().splitlines()[1:]
    assert links == ['<p><a href="replay/one/report.html">one</a> How fast?</p>']


def test_unwritable_home_is_one_sentence(make):
    status, said = make("site", HOME="/dev/null", XDG_CACHE_HOME="")
    assert status == 2 and said.startswith("error: /dev/null/.cache cannot be written: clone into")
    assert make("site", HOME="/dev/null", XDG_CACHE_HOME="cache")[0] == 0


def test_own_configuration_is_merged_into_scaling_study(make):
    status, said = make("study", f"CONFIG={CODE}")
    assert status and f"there is no file {CODE} here" in said
    (make.folder / "my study.yaml").touch()
    # A dry run runs no study.
    status, said = make("-n", "study", "CONFIG=my study.yaml")
    assert status == 0 and "snakemake --profile" in said
    words = make("study", "CONFIG=my study.yaml")[1].splitlines()
    assert words[-3:] == ["--configfile", "config/scaling.yaml", "my study.yaml"]


def test_pack_replaces_a_study_by_force_1_alone(make):
    for force in ("1", "0", ""):
        words = make("pack", "STUDY=mine", f"FORCE={force}")[1].split()
        assert ("--force" in words) == (force == "1")
