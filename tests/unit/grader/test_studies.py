"""Auditing a pile of submissions: what the terminal says, what the page shows, how it ends."""

import csv
import os
from pathlib import Path

import pandas as pd
import pytest

from examples.grader.published_study import CLEAN, column, edited, write
from examples.page import Page
from grader import audit_studies
from grader.study import CIFAR10_TRAIN_IMAGES
from scaling.core.errors import UserError

TIMES_GPUS = column("printed_speedup", "3.679", "3.910", "14.72", "15.63")
NONE = CLEAN.splitlines()[0] + "\nnone,ddp,resnet18-cifar,11173962,2,128,oom,,,,,,,,,,\n"


@pytest.fixture
def pile(tmp_path):
    """Submissions: a clean one, two of one name with wrong speedups, one that cannot be read."""
    write(tmp_path / "ann")
    for name in ("bob b", "dan"):
        write(tmp_path / name, edited(TIMES_GPUS, CLEAN.replace("clean,", "bobs,")))
    write(tmp_path / "cem", CLEAN.replace("9.784", "fast", 1))
    return [str(tmp_path / name) for name in ("ann", "bob b", "cem", "dan")]


def test_a_pile_has_a_line_for_each_submission_and_a_page(pile, tmp_path, capsys):
    target = tmp_path / "audit.html"
    with pytest.raises(audit_studies.ErrorsFound) as failed:
        audit_studies.main([*pile, pile[0], "--form", "B5", "--output", str(target)])
    wrong = ", ".join([pile[1], pile[3]])
    assert str(failed.value) == f"2 of 4 have errors: {wrong}; see the findings above"
    assert failed.value.status == 3
    lines = capsys.readouterr().out.splitlines()
    text = "the printed speedup is N times T(1,b) / T(N,b), and counts the GPUs twice"
    start = (
        f"{pile[1]}: bobs: error: times gpus: {text} (ddp: 2 x 128: 3.68, expected 1.84; 2 x 512"
    )
    assert any(line.startswith(start) and "leave the factor N" in line for line in lines)
    assert f"{pile[2]}: clean: note: line 4, column epoch_seconds: 'fast' is no epoch" in str(lines)
    summary = [line.split("  ")[-1].strip() for line in lines[-6:-2]]
    assert summary[0] == "18 figures: 18 right; no findings"
    assert summary[1] == "18 figures: 14 right, 4 wrong; 1 error"
    assert lines[-2:] == ["4 given, 4 read, 0 refused", f"The page is {target}"]
    page = Page(target.read_text(encoding="utf-8"))
    row = [pile[0], "7", "18 figures: 18 right", "0", "0", "0", "–", "20"]
    assert page.rows("All studies")[0] == ["clean", *row]
    row = [pile[1], "7", "18 figures: 14 right, 4 wrong", "1", "0", "0", "times gpus", "18"]
    assert page.rows("All studies")[1] == ["bobs", *row]
    ids = [named["id"] for _, named in page.elements if "id" in named]
    assert len(ids) == len(set(ids))
    links = {named["href"] for tag, named in page.elements if tag == "a"}
    for link in links - {f"#{one}" for one in ids}:
        file, _, anchor = link.partition("#")
        linked = Page((tmp_path / file).read_text(encoding="utf-8"))
        assert anchor in [named.get("id") for _, named in linked.elements]
    folder = tmp_path / "audit"
    own = Page((folder / "002-bob-b.html").read_text(encoding="utf-8"))
    (finding,) = own.rows("Findings")
    assert finding[:2] == ["error", "times gpus"] and "leave the factor N away." in finding[4]
    wrong = own.rows("Wrong figures")
    assert len(wrong) == 4 and wrong[0] == ["Q2", "speedup", "2 x 128", "3.68", "1.84"]
    points = [["Q2", "8", "10"], ["Q3.1", "5", "5"], ["Q3.2", "5", "5"], ["all", "18", "20"]]
    assert "18 figures: 14 right, 4 wrong; 1 error." in own.text and own.rows("Points") == points
    index = pd.read_csv(folder / "audit.csv")
    assert index[["study", "errors", "points"]].values.tolist()[1] == ["bobs", 1, 18]
    # With 100 images no batch of 128 can be drawn.
    with pytest.raises(UserError):
        audit_studies.main([pile[0], "--train-images", "100"])
    assert "a time for a global batch larger than the training set" in capsys.readouterr().out


MERGES = [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40)]
MANY = [CLEAN.splitlines()[1].replace("clean", f"s{number}") for number in range(100)]
ODD = [
    ("large", "timings.csv", b"a" * 4_000_001, "is no file of at most 4,000,000 bytes"),
    ("many", "timings.csv", "\n".join([CLEAN, *MANY]), "there are more than 100 studies"),
    ("bytes", "timings.csv", bytes(range(256)), "cannot be read"),
    ("long", "studies.yaml", "clean:\n" + "#" * 100_000, "is no file of at most 100,000 bytes"),
    ("yaml", "studies.yaml", "clean: {title: [1]}", "invalid description of clean in"),
    ("keys", "studies.yaml", "clean: {gpu: 4 A100}", "invalid description of clean in"),
    ("merges", "studies.yaml", "\n".join(["a0: &a0 {}", *MERGES]), "an alias"),
    ("bom", "timings.csv", "\ufeff" + CLEAN.replace(",", " , ") + "," * 16 + "\n", "no findings"),
    ("failed", "timings.csv", NONE, "no findings"),
    ("other", "batch_sweep.csv", "study,gpus,b,time\no,1,64,19.0", "timings.csv has no study o;"),
    ("a space", "notes.txt", "", "no findings"),
]


def test_whatever_lies_in_a_pile_each_gets_a_line(tmp_path, capsys):
    words = {"fifo": "is no file of at most 4,000,000 bytes", "nothing": "does not exist"}
    words |= {"linked": "is a link out of"}
    for name in words:
        (write(tmp_path / name) / "timings.csv").unlink()
    os.mkfifo(tmp_path / "fifo/timings.csv")
    (tmp_path / "linked/timings.csv").symlink_to(tmp_path / "bom/timings.csv")
    for name, file, content, verdict in ODD:
        text = content if isinstance(content, bytes) else content.encode()
        (write(tmp_path / name) / file).write_bytes(text)
        words[name] = verdict
    with pytest.raises(UserError, match="11 of 14 have errors"):
        audit_studies.main([str(tmp_path / "*"), "--output", str(tmp_path / "audit.html")])
    lines = capsys.readouterr().out.splitlines()[:-2]
    for name, expected in words.items():
        assert expected in next(x for x in lines if x.startswith(f"{tmp_path}/{name} "))


OWN = Path(__file__).parents[2] / "snapshots/expected"
OWN_NAMES = ["timing.csv", "speedup.csv", "bandwidth.csv", "answers.md"]
OWN_TABLES = [path for name in OWN_NAMES for path in sorted(OWN.rglob(name))]


def test_tables_of_our_own_studies_have_no_error():
    refused = {"answers.md": {"h200-large-batches", "h200x1", "quantization-cifar10"}}
    refused["bandwidth.csv"] = {"h200-large-batches", "h200x1"}
    for path in OWN_TABLES:
        submission = audit_studies.read(path, CIFAR10_TRAIN_IMAGES)
        study = path.relative_to(OWN).parts[0]
        assert bool(submission.refusal) == (study in refused.get(path.name, ())), path
        assert not [one.lines for one in submission.studies if one.counts["error"]], path


def test_a_name_steers_no_terminal_page_or_spreadsheet(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = edited(TIMES_GPUS, CLEAN.replace("clean,", "bobs,"))
    write(tmp_path / os.fsdecode(b"=1+1\x1b[2J\xe2\x80\xae\xff\n"), text)
    with pytest.raises(UserError):
        audit_studies.main(["=*", "--output", "audit.html"])
    pages = [path.read_text() for path in (*tmp_path.glob("*.html"), *tmp_path.glob("*/*.html"))]
    for shown in (capsys.readouterr().out, *pages):
        assert "=1+1\\x1b[2J\\u202e\\udcff\\n" in shown and not {"\x1b", "\u202e"} & set(shown)
    with (tmp_path / "audit/audit.csv").open(newline="") as file:
        assert {row["folder"][:5] for row in csv.DictReader(file)} == {"'=1+1"}


def test_folder_names_with_spaces_and_patterns_come_as_make_gives_them(tmp_path):
    folders = [write(tmp_path / name) for name in ("ann b", "bob")]
    assert audit_studies.paths([str(folders[0])]) == folders[:1]
    assert audit_studies.paths([f"{tmp_path}/* {tmp_path}/none"]) == [*folders, tmp_path / "none"]


def test_a_large_file_has_the_first_cells_of_each_finding_and_their_number(tmp_path, capsys):
    head, single, _, row = CLEAN.splitlines()[:4]
    # "2" may be 1.840 before it was rounded; all others are N itself.
    rows = [row.replace(",2,128,", f",{n},128,").replace("1.840", str(n)) for n in range(2, 212)]
    folder = write(tmp_path / "all", "\n".join([head, single, *rows]))
    with pytest.raises(UserError):
        audit_studies.main([str(folder), "--output", str(tmp_path / "audit.html")])
    text = capsys.readouterr().out
    assert "3 x 128: 3.00, expected 1.84; 4" in text and "and 204 more" in text


def test_a_defect_in_the_audit_of_one_study_leaves_the_others_theirs(pile, capsys, monkeypatch):
    judge = audit_studies.judge

    def broken(study, every, train_images):
        if study.name == "bobs":
            raise ZeroDivisionError("division by zero")
        return judge(study, every, train_images)

    monkeypatch.setattr(audit_studies, "judge", broken)
    with pytest.raises(UserError, match="1 of 2 have errors"):
        audit_studies.main(pile[:2])
    ann, bob = capsys.readouterr().out.splitlines()[-3:-1]
    assert ann.endswith("no findings")
    assert "the audit itself failed (ZeroDivisionError('division by zero'))" in bob
