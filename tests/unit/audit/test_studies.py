"""Auditing a pile of submissions: what the terminal says, what the page shows, how it ends."""

import pytest

import audit_studies
from examples.page import Page
from examples.published_study import CLEAN, column, edited, write
from scaling.core.errors import UserError
from scaling.report import submissions

TIMES_GPUS = column("printed_speedup", "3.679", "3.910", "14.72", "15.63")
FEW = "\n".join(CLEAN.splitlines()[:3]) + "\n"
"""Two cells with a time: too few for a cost model."""
NONE = CLEAN.splitlines()[0] + "\nnone,ddp,resnet18-cifar,11173962,2,128,oom,,,,,,,,,,\n"


@pytest.fixture
def pile(tmp_path):
    """Three submissions: a clean one, one with wrong speedups, one that cannot be read."""
    write(tmp_path / "ann")
    write(tmp_path / "bob", edited(TIMES_GPUS, CLEAN.replace("clean,", "bobs,")))
    write(tmp_path / "cem", CLEAN.replace("9.784", "fast", 1))
    return [str(tmp_path / name) for name in ("ann", "bob", "cem")]


def test_a_clean_submission_has_no_findings(pile, capsys):
    audit_studies.main([pile[0], pile[0]])
    assert capsys.readouterr().out.splitlines() == [
        *(f"clean ({pile[0]})", "  no findings", ""),
        f"{pile[0]}  clean  no findings",
    ]


def test_a_pile_has_a_line_for_each_submission_and_a_page(pile, tmp_path, capsys):
    target = tmp_path / "audit.html"
    with pytest.raises(UserError) as failed:
        audit_studies.main([*pile, "--output", str(target)])
    assert str(failed.value) == (
        f"2 of 3 have errors: {pile[1]}, {pile[2]}; see the findings above"
    )
    lines = capsys.readouterr().out.splitlines()
    assert (
        "  error    resnet18-cifar/ddp, 2 GPUs, b\u00a0=\u00a0128: the printed speedup is N times "
        "T(1,b) / T(N,b); an epoch on N GPUs already has N times fewer steps, so it counts the "
        "GPUs twice: found 3.68, expected 1.84"
    ) in lines
    ann, bob, cem = lines[-5:-2]
    assert ann == f"{pile[0]}  clean  no findings"
    assert bob.endswith("  bobs   4 errors, 4 warnings")
    assert "cannot be read" in cem and "line 4, column epoch_seconds: 'fast'" in cem
    page = Page(target.read_text(encoding="utf-8"))
    assert page.row("All studies", "–")[0] == pile[2]
    # 20 printed figures on several GPUs, of which ours has no utilization without a sweep; the
    # speedups of bob's follow another definition than ours
    assert page.row("All studies", "clean") == [pile[0], "7", "20", "20", "16", "no findings"]
    assert page.row("All studies", "bobs")[:5] == [pile[1], "7", "20", "20", "12"]
    assert page.row("What explains the differences", "times gpus")[-1] == (
        f"{pile[1]}/bobs (4 figures)"
    )


def test_two_submissions_of_one_study_name_are_told_apart(tmp_path):
    folders = [str(write(tmp_path / name, edited(TIMES_GPUS))) for name in ("ann b", "bob")]
    target = tmp_path / "audit.html"
    with pytest.raises(UserError):
        audit_studies.main([*folders, "--output", str(target)])
    page = Page(target.read_text(encoding="utf-8"))
    assert [row[:2] for row in page.rows("All studies")] == [["clean", one] for one in folders]
    ids = [named["id"] for _, named in page.elements if "id" in named]
    assert len(ids) == len(set(ids))
    links = {named["href"] for tag, named in page.elements if tag == "a"}
    assert links == {f"#{one}" for one in ids}


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


def test_a_single_file_is_a_submission_too(tmp_path, capsys):
    file = tmp_path / "dan.csv"
    file.write_text(CLEAN, encoding="utf-8")
    (tmp_path / "batch_sweep.csv").write_text("of somebody else", encoding="utf-8")
    audit_studies.main([str(file)])
    assert capsys.readouterr().out.splitlines()[-1] == f"{file}  clean  no findings"


def test_another_training_set_changes_the_iterations(pile, capsys):
    # With 100 images no batch of 128 can be drawn.
    with pytest.raises(UserError):
        audit_studies.main([pile[0], "--train-images", "100"])
    assert "a time for a global batch larger than the training set" in capsys.readouterr().out
