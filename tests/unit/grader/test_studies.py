"""Audits of several submissions: terminal output, page and exit status."""

import csv
import os
from pathlib import Path

import pandas as pd
import pytest

import snapshots
from examples.grader.published_study import CLEAN, column, edited, write
from examples.page import Page
from grader import audit_studies
from grader.study import CIFAR10_TRAIN_IMAGES
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from scaling.tables.ratios import OF_THROUGHPUT

TIMES_GPUS = column("printed_speedup", "3.679", "3.910", "14.72", "15.63")
TWICE = "counts gpus twice"
WRONG = edited(TIMES_GPUS, CLEAN.replace("clean,", "bobs,"))
NONE = CLEAN.splitlines()[0] + "\nnone,ddp,resnet18-cifar,11173962,2,128,oom,,,,,,,,,\n"


@pytest.fixture
def pile(tmp_path):
    """Return one correct submission, two of one name with wrong speedups, one without a row."""
    texts = {"ann": CLEAN, "bob b": WRONG, "cem": CLEAN.replace("9.784", "fast", 1), "dan": WRONG}
    return [str(write(tmp_path / name, text)) for name, text in texts.items()]


def test_a_pile_has_a_line_for_each_submission_and_a_page(pile, tmp_path, capsys):
    target = tmp_path / "audit.html"
    with pytest.raises(UserError) as failed:
        audit_studies.main([*pile, pile[0], "--form", "B5", "--output", str(target)])
    wrong = ", ".join([pile[1], pile[3]])
    assert str(failed.value).startswith(f"2 of 4 have errors or are refused: {wrong};")
    assert failed.value.status == 3
    lines = capsys.readouterr().out.splitlines()
    start = f"{pile[1]}: bobs: error: {TWICE}: the printed speedup is N times T(1,b) / T(N,b)"
    (line,) = [one for one in lines if one.startswith(start)]
    assert "leave the factor N away" in line
    assert "(ddp: 2 x 128: 3.679, expected 1.84; 2 x 512" in line
    assert line.count("expected") == 3 and " and more, 4 in all)" in line
    assert f"{pile[2]}: clean: note: line 4, column epoch_seconds: 'fast' is no epoch" in str(lines)
    summary = [line.split("  ")[-1].strip() for line in lines[-6:-2]]
    assert summary[0] == "18 figures: 18 right; no findings"
    assert summary[1] == "18 figures: 14 right, 4 wrong; 1 error"
    assert lines[-2:] == ["4 given, 4 read, 0 refused", f"The page is {target}"]
    page = Page(target.read_text(encoding="utf-8"))
    right, errors = ["clean", pile[0], "7"], ["bobs", pile[1], "7"]
    rows = [[*right, summary[0], "", "20"], [*errors, summary[1], f"speedup: {TWICE}", "18"]]
    assert page.rows("All studies")[:2] == rows
    for link in {named["href"] for tag, named in page.elements if tag == "a"} - {"#all"}:
        file, _, anchor = link.partition("#")
        linked = Page((tmp_path / file).read_text(encoding="utf-8"))
        ids = [named["id"] for _, named in linked.elements if "id" in named]
        assert anchor in ids and len(ids) == len(set(ids))
    folder = tmp_path / "audit"
    own = Page((folder / "002-bob-b.html").read_text(encoding="utf-8"))
    (finding,) = own.rows("Findings")
    assert finding[:2] == ["error", TWICE] and "leave the factor N away." in finding[4]
    wrong = own.rows("Wrong figures")
    assert len(wrong) == 4 and wrong[0] == ["Q2", "speedup", "2 x 128", "3.679", "1.84"]
    points = [["Q2", "8", "10"], ["Q3.1", "5", "5"], ["Q3.2", "5", "5"], ["all", "18", "20"]]
    assert f"{summary[1]}." in own.text and own.rows("Points") == points
    index = pd.read_csv(folder / "audit.csv")
    assert [*index.loc[1, ["study", "causes", "points"]]] == ["bobs", f"speedup: {TWICE}", 18]
    # With 100 images no batch of 128 can be drawn.
    with pytest.raises(UserError):
        audit_studies.main([pile[0], "--train-images", "100"])
    assert "a time for a global batch larger than the training set" in capsys.readouterr().out


MERGES = [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40)]
ODD = {
    "large": ("timings.csv", "a" * 4_000_001, "is no file of at most 4,000,000 bytes"),
    "bytes": ("timings.csv", bytes(range(256)).decode("latin1"), "cannot be read"),
    "long": ("studies.yaml", "clean:\n" + "#" * 100_000, "is no file of at most 100,000 bytes"),
    "keys": ("studies.yaml", "clean: 4 A100", "below each study's name"),
    "merges": ("studies.yaml", "\n".join(["a0: &a0 {}", *MERGES]), "an alias"),
    "bom": ("timings.csv", "\ufeff" + CLEAN.replace(",", " , ") + "," * 16, "no findings"),
    "failed": ("timings.csv", NONE, "no findings"),
    "a space": ("notes.txt", "", "no findings"),
}


def test_whatever_lies_in_a_pile_each_gets_a_line(tmp_path, capsys):
    words = {"fifo": "is no file of at most 4,000,000 bytes", "nothing": "no table in it; save"}
    words |= {"linked": "is a link out of"}
    for name in words:
        (write(tmp_path / name) / "timings.csv").unlink()
    os.mkfifo(tmp_path / "fifo/timings.csv")
    (tmp_path / "linked/timings.csv").symlink_to(tmp_path / "bom/timings.csv")
    for name, (file, text, verdict) in ODD.items():
        (write(tmp_path / name) / file).write_text(text, encoding="utf-8")
        words[name] = verdict
    with pytest.raises(UserError, match="8 of 11 have errors"):
        audit_studies.main([str(tmp_path / "*"), "--output", str(tmp_path / "audit.html")])
    lines = capsys.readouterr().out.splitlines()[:-2]
    for name, expected in words.items():
        assert expected in next(x for x in lines if x.startswith(f"{tmp_path}/{name} "))


def test_answers_in_the_order_of_a_form_are_not_read_again(tmp_path):
    for name in ("answers.md", "answers-B5.md", "answers-Q7.md"):
        (tmp_path / name).write_text(CLEAN, encoding="utf-8")
    assert audit_studies.paths([str(tmp_path)])[0] == [tmp_path / "answers.md"]
    (tmp_path / "answers.md").unlink()
    assert len(audit_studies.paths([str(tmp_path)])[0]) == 2


def test_a_file_that_is_not_read_is_named(tmp_path, capsys):
    for name in ("ann/a.csv", "ann/code/x.py", "bob/b.pdf", "cid/timings.csv", "cid/more.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CLEAN)
    (tmp_path / "dee").mkdir()
    with pytest.raises(UserError, match=r"2 of 4 have errors or are refused: .*bob, .*dee;"):
        audit_studies.main([str(tmp_path)])
    *_, last, counts = capsys.readouterr().out.splitlines()
    names = ", ".join(str(tmp_path / x) for x in ("ann/code/x.py", "bob/b.pdf", "cid/more.csv"))
    assert last == f"not read: {names}; save tables as CSV and give each by its name"
    assert counts == "4 given, 2 read, 2 refused"


def test_tables_of_our_own_studies_have_no_error():
    untimed = {"quantization-cifar10", "h200-constant-rate", "h200-large-batches"}
    names = ("answers.md", "bandwidth.csv", "timing.csv", "speedup.csv")
    folder = Path(__file__).parents[2] / "snapshots/expected"
    for path in (path for name in names for path in sorted(folder.rglob(name))):
        submission = audit_studies.read(path, CIFAR10_TRAIN_IMAGES)
        study = path.relative_to(folder).parts[0]
        assert bool(submission.refusal) == (study in untimed), path
        assert not [one.lines for one in submission.studies if one.judgement.figures["wrong"]], path


def test_a_speedup_of_throughput_is_not_computed_from_seconds(tmp_path):
    with snapshots.project_copy() as folder:
        for path in folder.glob("studies/command/runs/**/batch_size~32/**/run.json"):
            record = RUN.read(path)
            # As if an epoch had a fixed number of steps.
            for one in record["epochs"]:
                one["samples"] *= record["cell"]["gpus"]
            RUN.write(path, record)
        results = snapshots.make("command")
        # Checked are speedups of the other batch sizes, in speedup.csv those of one GPU as well.
        for name, right in (("answers.md", 2), ("tables/command/speedup.csv", 2 * (2 + 3))):
            (one,) = audit_studies.read(results / name, CIFAR10_TRAIN_IMAGES).studies
            assert "not checked: speedups, which are of throughput" in one.study.notes
            assert one.judgement.figures["right"] == right and "2 x 32" not in str(one.lines)
            # On two CPU cores one batch is twice as fast by noise.
            assert {severity for severity, *_ in one.findings} <= {"remark"}, one.lines
    (tmp_path / "t.csv").write_text(f"{OF_THROUGHPUT}\n\n{WRONG}")
    (one,) = audit_studies.read(tmp_path / "t.csv", CIFAR10_TRAIN_IMAGES).studies
    assert one.judgement.figures["wrong"] == 0


@pytest.mark.parametrize(("time", "shown"), [(8, "3.0"), (9, "3.0, expected 0.500")])
def test_an_expected_value_below_zero_is_not_shown(tmp_path, time, shown):
    # 8 - 17/2 = -0.5 s, by rounding -1.25 to 0.25 s; 9 - 17/2 = 0.5 s
    path = tmp_path / "t.csv"
    path.write_text(f"gpus,batch,time (s),comm (s)\n1,32,17,\n2,32,{time},3.0\n")
    (one,) = audit_studies.read(path, CIFAR10_TRAIN_IMAGES).studies
    (line,) = [line for line in one.lines if "communication" in line]
    assert f"(2 x 32: {shown})" in line


def test_a_name_steers_no_terminal_page_or_spreadsheet(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / os.fsdecode(b"=1+1\x1b[2J\xe2\x80\xae\xff\n"), WRONG)
    with pytest.raises(UserError):
        audit_studies.main(["=*", "--output", "audit.html"])
    pages = [path.read_text() for path in (*tmp_path.glob("*.html"), *tmp_path.glob("*/*.html"))]
    for shown in (capsys.readouterr().out, *pages):
        assert "=1+1\\x1b[2J\\u202e\\udcff\\n" in shown and not {"\x1b", "\u202e"} & set(shown)
    with (tmp_path / "audit/audit.csv").open(newline="") as file:
        assert {row["folder"][:5] for row in csv.DictReader(file)} == {"'=1+1"}


def test_folder_names_with_spaces_come_as_make_gives_them(tmp_path):
    folders = [write(tmp_path / name) for name in ("ann b", "bob")]
    assert audit_studies.paths([str(folders[0])])[0] == folders[:1]
    found, _ = audit_studies.paths([f"{tmp_path}/* {tmp_path}/none"])
    assert found == [*folders, tmp_path / "none"]


def test_a_defect_in_the_audit_of_one_study_keeps_the_others(pile, capsys, monkeypatch):
    judge = audit_studies.judge
    monkeypatch.setattr(
        audit_studies, "judge", lambda *given: 1 / (given[0].name != "bobs") and judge(*given)
    )
    with pytest.raises(UserError, match="1 of 2 have errors"):
        audit_studies.main(pile[:2])
    ann, bob = capsys.readouterr().out.splitlines()[-3:-1]
    assert ann.endswith("no findings")
    assert "the audit itself failed (ZeroDivisionError('division by zero'))" in bob
