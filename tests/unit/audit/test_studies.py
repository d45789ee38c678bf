"""Auditing a pile of submissions: what the terminal says, what the page shows, how it exits."""

import subprocess
import sys
from pathlib import Path

import pytest

import audit_studies
from examples.published_study import CLEAN, column, edited, write
from examples.report_page import Page
from scaling.core.errors import UserError
from scaling.report import submissions

ROOT = Path(__file__).parents[3]
TIMES_GPUS = column("printed_speedup", "3.679", "3.910", "14.72", "15.63")


@pytest.fixture
def pile(tmp_path):
    """Three submissions: a clean one, one with wrong speedups, one that cannot be read."""
    write(tmp_path / "ann")
    write(tmp_path / "bob", edited(TIMES_GPUS, CLEAN.replace("clean,", "bobs,")))
    write(tmp_path / "cem", CLEAN.replace("9.784", "fast", 1))
    return [str(tmp_path / name) for name in ("ann", "bob", "cem")]


def test_a_clean_submission_has_no_findings_and_exits_with_0(pile, capsys):
    audit_studies.main(pile[:1])
    assert capsys.readouterr().out.splitlines() == [
        f"clean ({pile[0]})",
        "  no findings",
        "",
        f"{pile[0]}  clean  no findings",
    ]


def test_one_summary_line_for_each_submission_and_exit_status_1(pile):
    command = [sys.executable, str(ROOT / "workflow/scripts/audit_studies.py"), *pile]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    ann, bob, cem = done.stdout.splitlines()[-3:]
    assert ann == f"{pile[0]}  clean  no findings"
    assert bob.endswith("  bobs   4 errors, 4 warnings")
    assert "cannot be read" in cem and "line 4, column epoch_seconds: 'fast'" in cem
    assert done.stderr == (
        f"error: 2 of 3 have errors: {pile[1]}, {pile[2]}; see the findings above\n"
    )


def test_each_finding_names_its_cell_and_both_figures(pile, capsys):
    with pytest.raises(UserError):
        audit_studies.main(pile[1:2])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "  error    resnet18-cifar/ddp, 2 GPUs, b\u00a0=\u00a0128: the printed speedup is N times "
        "T(1,b) / T(N,b); an epoch on N GPUs already has N times fewer steps, so it counts the "
        "GPUs twice: found 3.68, expected 1.84"
    )


def test_the_page_shows_every_submission_and_what_could_not_be_read(pile, tmp_path):
    target = tmp_path / "audit.html"
    with pytest.raises(UserError):
        audit_studies.main([*pile, "--output", str(target)])
    page = Page(target.read_text(encoding="utf-8"))
    assert "Audit of 2 studies" in page.text
    refused = page.row("All studies", "–")
    assert refused[0] == pile[2]
    assert refused[1].startswith("cannot be read: ") and "column epoch_seconds" in refused[1]
    # 20 printed figures on several GPUs, of which ours has no utilization without a sweep; the
    # speedups of bob's follow another definition than ours
    assert page.row("All studies", "clean") == [pile[0], "7", "20", "20", "16", "no findings"]
    assert page.row("All studies", "bobs")[:5] == [pile[1], "7", "20", "20", "12"]
    assert page.row("What explains the differences", "times gpus")[-1] == "bobs (4 figures)"
    assert "a figure with several mistakes counts once for each of them" in page.text
    printed = page.rows("Printed against derived: bobs")
    assert printed[0] == [
        *("speedup", "ddp: N · T(1,b) / T(N,b)", "2 × 128", "3.679"),
        *("3.679", "1.840", "2.00×", "times gpus"),
    ]
    assert "Findings: bobs" in page.tables and "Findings: clean" not in page.tables
    assert page.row("Checks", "other definition")[-1] == "4"


def test_two_submissions_of_one_study_name_are_told_apart(tmp_path):
    folders = [str(write(tmp_path / name, edited(TIMES_GPUS))) for name in ("ann b", "bob")]
    target = tmp_path / "audit.html"
    with pytest.raises(UserError):
        audit_studies.main([*folders, "--output", str(target)])
    page = Page(target.read_text(encoding="utf-8"))
    assert [row[:2] for row in page.rows("All studies")] == [["clean", one] for one in folders]
    assert page.row("What explains the differences", "times gpus")[-1] == (
        f"clean in {folders[0]} (4 figures), clean in {folders[1]} (4 figures)"
    )
    ids = [named["id"] for _, named in page.elements if "id" in named]
    assert len(ids) == len(set(ids))
    links = {named["href"] for tag, named in page.elements if tag == "a"}
    assert links == {f"#{one}" for one in ids}
    assert all(f"{folder}" in page.text for folder in folders)


FEW = "\n".join(CLEAN.splitlines()[:3]) + "\n"
"""Two cells with a time: too few for a cost model."""
NONE = CLEAN.splitlines()[0] + "\nnone,ddp,resnet18-cifar,11173962,2,128,oom,,,,,,,,,,\n"


@pytest.mark.parametrize(("text", "cells"), [(FEW, "2"), (NONE, "1")])
def test_a_study_with_hardly_a_time_is_audited_all_the_same(tmp_path, text, cells):
    target = tmp_path / "audit.html"
    audit_studies.main([str(write(tmp_path / "few", text)), "--output", str(target)])
    (row,) = Page(target.read_text(encoding="utf-8")).rows("All studies")
    assert row[2:] == [cells, "0", "0", "0", "no findings"]


def test_a_defect_in_the_audit_of_one_study_leaves_the_others_theirs(pile, capsys, monkeypatch):
    derive = submissions.derive

    def broken(study, train_images):
        if study.name == "bobs":
            raise ZeroDivisionError("division by zero")
        return derive(study, train_images)

    monkeypatch.setattr(submissions, "derive", broken)
    with pytest.raises(UserError, match="1 of 2 have errors"):
        audit_studies.main(pile[:2])
    ann, bob = capsys.readouterr().out.splitlines()[-2:]
    assert ann.endswith("clean  no findings")
    assert "the audit itself failed (ZeroDivisionError('division by zero'))" in bob


def test_a_single_file_is_a_submission_too(pile, tmp_path, capsys):
    file = tmp_path / "dan.csv"
    file.write_text(CLEAN, encoding="utf-8")
    (tmp_path / "batch_sweep.csv").write_text("of somebody else", encoding="utf-8")
    audit_studies.main([str(file), pile[0]])
    assert capsys.readouterr().out.splitlines()[-2].split() == [
        str(file),
        "clean",
        "no",
        "findings",
    ]


def test_another_training_set_changes_the_iterations(pile, capsys):
    # With 100 images no batch of 128 can be drawn.
    with pytest.raises(UserError):
        audit_studies.main([pile[0], "--train-images", "100"])
    assert "a time for a global batch larger than the training set" in capsys.readouterr().out
