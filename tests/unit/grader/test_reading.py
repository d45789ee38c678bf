"""Tables as people have them: each is the study it means, or refused in a sentence."""

import csv
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.grader.published_study import CLEAN, HEADER, TRAIN_IMAGES, edited, write
from grader import audit_studies
from grader.findings import judge
from grader.study import read_folder
from scaling.core.errors import UserError

WITHOUT = "epoch_seconds_without_loading"
LONG = "GPUs,Batch size,Time (s),Speedup\n1,32,16.0,1\n1,128,8.0,1\n2,32,10.0,1.6\n2,128,OOM,\n"
WIDE = """\t32\t\t128\t
GPUs\tTime (s)\tSpeedup\tTime (s)\tSpeedup
1\t16.0\t1\t8.0\t1
2\t10.0\t1.6\tOOM\t–
"""
PARTS = """# Report

Epoch time in seconds, all of it

| GPUs \\ Batch | 32 | 128 |
|:-:|--:|--:|
| 1 | **16.0** | 8.0 |
| 2 | 10.0 | OOM |

Table 2: Speedup

| | Batch 32 per GPU | b=128 |
|---|---|---|
| 1-GPU | 1 | 1 |
| 2-GPU | 1.6x | n/a |
"""
SECTIONS = """Batch size 32,,
num_gpus,seconds,speedup
1,16.0,1
2,10.0,1.6

Batch size 128,,
num_gpus,seconds,speedup
1,8.0,1
2,out of memory,-
"""
MILLISECONDS = LONG.replace("16.0", "16000").replace("8.0,", "8000,").replace("(s)", "[ms]")
NOTES = LONG.replace("Speedup\n", "Speedup\n,,s,\n") + "\nSource: my GPUs,,,\n"
FORMS = [
    LONG,
    LONG.replace(",", "\t"),
    LONG.replace(",", "   "),
    "sep=;\n" + LONG.replace(",", ";").replace(".", ","),
    LONG.replace(",", " | ").replace("OOM", "oom"),
    LONG.replace("Batch size", "bs").replace("GPUs", "#GPUs").replace("Time (s)", "epochTime"),
    LONG.replace("1,128", ",128").replace("2,128", ",128"),
    LONG.replace("1,32", "1x V100,32").replace("2,32", "2 GPUs,32"),
    MILLISECONDS.replace("10.0", "10 s"),
    LONG.replace("2,32", "2,64").replace("2,128", "2,256").replace("Batch", "Global batch"),
    LONG.replace("Time (s)", "Time per epoch,std").replace(".0,", ".0,0.1,").replace("M,", "M,,"),
    "My results,,,\n" + NOTES,
    WIDE,
    WIDE.replace("\t32", "\tbatch 32").replace("\t128", "\tbatch 128").replace("GPUs", ""),
    "Batch,1 GPU time,2 GPUs time,Speedup 2 GPUs\n32,16,10,1.6\n128,8,OOM,\n",
    "gpus,time_bs32,time_bs128,speedup_bs32,speedup_bs128\n1,16.0,8.0,1,1\n2,10.0,OOM,1.6,\n",
    "Run,T (s),Speedup\n1 x 32,16.0,1\n1 x 128,8.0,1\n2 x 32,10.0,1.6\n2 x 128,OOM,n/a\n",
    PARTS,
    SECTIONS,
]


def read(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return read_folder(path)


@pytest.mark.parametrize("text", FORMS)
def test_every_form_of_one_table_is_the_same_study(tmp_path, text):
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        (study,) = read(tmp_path, text, encoding=encoding)
        rows = study.rows.set_index(["gpus", "batch_size"]).sort_index()
        assert list(map(float, rows["epoch_seconds"].dropna())) == [16.0, 8.0, 10.0]
        assert {float(one) for one in rows["printed_speedup"].dropna()} - {1} == {1.6}
        assert list(rows["status"]) == ["ok", "ok", "ok", "oom"]
        assert (study.name, study.strategies) == ("t", ["not stated"])
        assert "not stated: strategy, model" in study.reading


@pytest.mark.parametrize(
    ("header", "row", "expected", "said"),
    [
        ("s_total,sec", "10,9", {"epoch_seconds": 10, WITHOUT: 9}, "`sec`, the shorter time"),
        ("time,train time", "10,9", {"epoch_seconds": 10, WITHOUT: 9}, "`train time`, the shorter"),
        ("images/s", "5000", {"epoch_seconds": 10}, "seconds = `images/s`, images per second"),
        ("throughput per GPU", "2500", {"epoch_seconds": 10}, "of each GPU"),
        ("Time (min)", "0.5", {"epoch_seconds": 30}, "`Time (min)` x 60"),
        ("Zeit,Bandwidth [MB/s]", "30,1200", {"printed_bandwidth_gb_per_s": 1.2}, "x 0.001"),
        ("Training time without data loading", "9", {WITHOUT: 9}, "loading = `Tr"),
        ("Comm (s),Comp (s)", "−2,8", {"printed_communication_seconds": -2}, "not stated"),
        ("Utilization(GB/s)", "0.9", {"printed_bandwidth_gb_per_s": 0.9}, "bandwidth"),
        ("BW util.,lr", "85 %,0.1", {"printed_utilization_percent": 85}, "not read: `lr`"),
        ("Speedup", "1.8", {"printed_speedup": 1.8}, "speedup = `Speedup`"),
        ("DDP time", "9", {"epoch_seconds": 9, "strategy": "ddp"}, "strategy = `DDP time`"),
    ],
)
def test_a_header_is_read_by_its_meaning_and_unit(tmp_path, header, row, expected, said):
    text = f"World size,local batch,{header}\n2,32,{row}\n".replace(",", "\t")
    (study,) = read(tmp_path, text)
    found = study.rows.iloc[0]
    assert {name: type(value)(found[name]) for name, value in expected.items()} == expected
    assert said in study.reading and "batch = `local batch`, per GPU" in study.reading


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name,loss\na,3\n", "line 1: there is no column of GPUs, batch size, time or speedup"),
        ("gpus,batch,it/s\n1,32,80\n", "of time or speedup among `gpus`, `batch`, `it/s`"),
        ("gpus,batch,time a,time b\n1,32,9,8\n2,32,5,6\n", "`time a` and `time b` may each be the"),
        ("gpus,batch,time_min\n1,32,1.5\n", "`time_min` may be minutes or the minimum; say which"),
        ('gpus,batch,time\n1,32,"1,024"\n', "1,024 may have a decimal comma or separate thousands"),
        ("gpus,32,128\n1,16,8\n", "nothing says what the figures of `32` are"),
        ("gpus,total batch,time\n3,64,8\n", "line 2, column total batch: '64 / 3': "),
        ("gpus,batch,time (s)\n1,32,soon\n", r"line 2, column time \(s\): 'soon': "),
        ("gpus,batch,time\n1,32,9\n1,32,9\n", "line 3: t has 1 GPUs, batch 32 a second time"),
        ("Nothing but a text,\nand another line.\n", "has no row of a table"),
        (HEADER + "\n", "has no row"),
        (CLEAN.replace("_without_loading", ""), "line 1: `epoch_seconds` and `epoch_seconds`"),
        (CLEAN.replace(",1,,,,,5,17.9", ",1,,,,5,17.9"), "line 2: .* not as many fields"),
        (edited({(2, 128): {"epoch_seconds": ""}}), "line 4.* status ok needs a time"),
        (edited({(2, 512): {"parameters": "1"}}), "clean has two numbers of parameters"),
    ],
)
def test_what_is_missing_or_may_be_two_things_is_asked_in_a_sentence(tmp_path, text, complaint):
    with pytest.raises(UserError, match=complaint) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_tables_of_one_file_that_contradict_each_other_are_studies_of_their_own(tmp_path):
    tables = [LONG, LONG.replace("16.0", "17.0"), "epochs,accuracy\n1,0.5\n"]
    first, second = read(tmp_path, "\n".join(tables))
    assert [first.name, second.name] == ["t", "t-2"] and len(first.rows) == len(second.rows) == 4
    assert "there is no column of GPUs" in first.reading, "what is passed over is told"
    both = "\n".join(f"{name}\n{LONG}" for name in ("DataParallel", "DistributedDataParallel"))
    (study,) = read(tmp_path, both)
    assert study.strategies == ["ddp", "dp"]


def test_each_sheet_of_a_workbook_is_a_table(tmp_path):
    frame = pd.DataFrame({"GPUs": [1, 2], "Batch size": [32, 32], "Time (s)": [16.25, 10.5]})
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        frame.to_excel(book, sheet_name="DP", index=False)
        frame.set_index("GPUs").to_excel(book, sheet_name="DDP")
    (study,) = read_folder(tmp_path / "book.xlsx")
    assert study.strategies == ["ddp", "dp"]
    assert list(map(float, study.rows["epoch_seconds"])) == [16.25, 10.5] * 2
    (tmp_path / "no.xlsx").write_bytes(b"PK no")
    with pytest.raises(UserError, match=r"no\.xlsx cannot be read as a workbook"):
        read_folder(tmp_path / "no.xlsx")


def test_what_file_managers_leave_is_no_submission_and_a_folder_is_all_its_tables(tmp_path, capsys):
    names = ["ann/Timings.CSV", "bob/a.tsv", "bob/__MACOSX/a.tsv", "bob/.b.csv", ".DS_Store"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LONG.replace(",", "\t"))
    (tmp_path / "bob/README.md").write_text("| file |\n|---|\n| a.tsv |\n")
    for pattern in (str(tmp_path), f"{tmp_path}/*"):
        audit_studies.main([pattern])
        ann, bob = capsys.readouterr().out.splitlines()[-2:]
        assert ann.split()[:2] == [f"{tmp_path}/ann", "ann"]
        assert bob.split()[:2] == [f"{tmp_path}/bob/a.tsv", "a"]


def test_how_a_table_was_read_is_a_line_before_its_findings_and_ours_has_none(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(LONG)
    (tmp_path / "batch_sweep.csv").write_text("of somebody else: a file is read alone")
    audit_studies.main([str(tmp_path / "t.csv")])
    assert capsys.readouterr().out.splitlines()[0] == (
        f"{tmp_path}/t.csv: t: read: GPUs = `GPUs`; batch = `Batch size`, per GPU; seconds = "
        "`Time (s)`; speedup = `Speedup`; not stated: strategy, model"
    )
    (ours,) = read(tmp_path, CLEAN)
    assert ours.reading == ""
    (same,) = read(tmp_path, CLEAN.title().replace(",", ";").replace(".", ","))
    assert same.rows.equals(ours.rows.assign(study="Clean", model="Resnet18-Cifar"))
    assert same.reading == ""


def test_a_study_is_read_with_the_digits_that_were_printed(tmp_path):
    """A column more and a byte order mark do not matter, nor does what nobody stated."""
    lines = [f"{line},x" for line in CLEAN.replace("11173962", "").splitlines()]
    (found,) = read_folder(write(tmp_path, "\ufeff" + "\n".join(lines)))
    rows = found.rows.set_index(["gpus", "batch_size"])
    assert rows.loc[(2, 128)].printed_speedup.as_tuple() == Decimal("1.840").as_tuple()
    assert rows.loc[(1, 128)].printed_utilization_percent is found.parameters is None
    (tmp_path / "studies.yaml").write_text("clean: {hardware: 4 A100, doubts: [one run]}")
    description = read_folder(tmp_path)[0].description
    assert (description.hardware, description.doubts) == ("4 A100", ["one run"])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("epoch_seconds", ["fast", "-9.784", "0", "1e14", "1e-300", "1e999999999"]),
        ("printed_speedup", ["1e16", "1e999999999", "1e-400", "0e999", "1,84"]),
        ("gpus", ["1000001", "2.5"]),
        ("batch_size", ["0", "1e13"]),
        ("parameters", ["11M"]),
        ("count", ["0"]),
        ("strategy", ["fsdp"]),
        ("status", ["failed"]),
        ("study", ["../up"]),
    ],
)
def test_a_wrong_field_is_named_by_file_line_and_column(tmp_path, column, values):
    for value in values:
        text = edited({(2, 128): {column: f'"{value}"' if "," in value else value}})
        with pytest.raises(UserError) as refused:
            read_folder(write(tmp_path, text))
        where = f"{tmp_path}/timings.csv, line 4, column {column}: {value!r}: "
        assert str(refused.value).startswith(where)


@given(
    line=st.integers(0, 7),
    position=st.integers(0, len(HEADER.split(",")) - 1),
    text=st.text() | st.floats().map(str) | st.integers().map(str),
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_stands_in_a_field_it_is_read_or_refused(tmp_path, line, position, text):
    rows = [row.split(",") for row in CLEAN.splitlines()]
    rows[line][position] = text
    with (tmp_path / "timings.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    refusal = "timings.csv"
    try:
        for found in read_folder(tmp_path):
            judge(found, TRAIN_IMAGES)
    except UserError as error:
        refusal = str(error)
    assert "timings.csv" in refusal
