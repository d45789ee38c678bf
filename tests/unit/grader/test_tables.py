"""Tables as users write them. Each is read as the study it means, or refused in one sentence."""

import pandas as pd
import pytest

from examples.grader.published_study import CLEAN, HEADER, TRAIN_IMAGES, edited, write
from grader.judge import judge
from grader.study import read_folder
from scaling.core.errors import UserError

LONG = "GPUs,Batch size,Time (s),Speedup\n1,32,16.0,1\n1,128,8.0,1\n2,32,10.0,1.6\n2,128,OOM,\n"
WIDE = "\t32\t\t128\t\nGPUs\tTime (s)\tSpeedup\tTime (s)\tSpeedup\n"
WIDE += "1\t16.0\t1\t8.0\t1\n2\t10.0\t1.6\tOOM\t–\n"
PARTS = """Epoch time in seconds, all of it

| GPUs \\ Batch | 32 | 128 |
|:-:|--:|--:|
| 1 | **16.0** | 8.0† |
| 2 | 10.0 ± 0.1 | OOM |

Table 2: Speedup

| | Batch 32 per GPU | b=128 |
|---|---|---|
| 1-GPU | 1 | 1 |
| 2-GPU | 1.6x | n/a |
"""
RUNS = "gpus,bs,run,seconds,speedup\n1,32,1,15.0,\n1,32,2,16.0,1\n1,32,3,17.0,\n1,128,1,8.0,1\n"
FORMS = [
    LONG,
    "sep=;\n" + LONG.replace(",", ";").replace(".", ","),
    LONG.replace("Time (s)", "Time,std").replace(".0,", ".000,0.100,").replace("M,", "M,,")
    .replace("1.6", "1.600").replace(",", "\t").replace(".", ","),
    # A sentence with commas above it, and no comma that cannot separate thousands.
    "On 2, then 1\n\n" + LONG.replace(",", ";").replace("1.6", "1,600").replace(".0", ",000"),
    # Quoted decimal commas below a line with separators, and a number with a point.
    "# 3 runs, 11.2M parameters, sgd, by a team, 2026\n"
    + LONG.replace("16.0,1\n", '"16,000","1,000"\n')
    .replace("8.0,1\n", '"8,000","1,000"\n').replace("10.0,1.6", '"10,000","1,600"'),
    LONG.replace("16.0", "16").replace(",", ";").replace(".", ",").replace("Time", "Time v1.2"),
    "|" + LONG.replace(",", " | ").replace("OOM", "out of memory").replace("\n", "|\n|") + "|",
    LONG.replace("1,128", ",128").replace("2,128", ",128"),
    LONG.replace("16.0", "16000").replace("8.0,", "8000,").replace("(s)", "[ms]")
    .replace("10.0", "10 s"),
    LONG.replace("16.0", "0:16").replace("10.0", "0m 10.0s"),
    LONG.replace("2,32", "2,64").replace("2,128", "2,256").replace("Batch", "Global batch"),
    LONG.replace("Time (s)", "Images/s").replace("16.0", "3125").replace("8.0,", "6250,")
    .replace("10.0", "5.0k"),
    RUNS + "2,32,1,10.0,1.6\n2,128,1,OOM,\n",
    WIDE,
    WIDE.replace("\t32", "\tbatch 32").replace("\t128", "\tbatch 128").replace("GPUs", ""),
    "Batch,1 GPU time,2 GPUs time,Speedup 2 GPUs\n32,16,10,1.6\n128,8,OOM,\n",
    "gpus,time_bs32,time_bs128,speedup_bs32,speedup_bs128\n1,16.0,8.0,1,1\n2,10.0,OOM,1.6,\n",
    PARTS,
]  # fmt: skip


def read(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return read_folder(path)


def values(cells):
    return [one.value for one in cells if one is not None]


@pytest.mark.parametrize("text", FORMS)
def test_every_form_of_one_table_is_the_same_study(tmp_path, text):
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        (study,) = read(tmp_path, text, encoding=encoding)
        rows = study.rows.sort_values(["gpus", "batch_size"])
        assert (list(rows["gpus"]), list(rows["batch_size"])) == ([1, 1, 2, 2], [32, 128] * 2)
        times = values(rows["epoch"]) or [TRAIN_IMAGES / one for one in values(rows["rate"])]
        assert times == [16.0, 8.0, 10.0] and set(values(rows["speedup"])) - {1} == {1.6}
        assert list(rows["status"]) == ["ok", "ok", "ok", "oom"]
        assert (study.name, study.strategies) == ("t", [""])
        assert judge(study, TRAIN_IMAGES).figures["wrong"] == 0


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("s_total,sec", "10,9", {"epoch": 10, "training": 9}),
        ("Time (min)", "0.5", {"epoch": 30}),
        ("time_in_min", "0.5", {"epoch": 30}),
        ("epoch_seconds,epoch_seconds_min,time_min", "9,8,7", {"epoch": 9, "least": 8}),
        ("time,Bandwidth [MB/s]", "30,1200", {"bandwidth": 1.2}),
        ("time,Bandwidth (Gbit/s)", "30,8.0", {"bandwidth": 1.0}),
        ("time,Bandwidth (GiB/s)", "30,1.0", {"bandwidth": 1.073741824}),
        ("time (µs),BW", "9500000,8 Mbit/s", {"epoch": 9.5, "bandwidth": 0.001}),
        ("time,bw", "9500ms,1200 kB/s", {"epoch": 9.5, "bandwidth": 0.0012}),
        ("time,Time (ms),S", "9.0,8999,1.5", {"epoch": 9, "speedup": 1.5}),
        ("Epoch 1 (s),Epoch 2 (s),Average (s)", "9,8,8.5", {"epoch": 8.5}),
        ("Val time,Data time,Other (s),Epoch time,img/s/GPU,Comment", "1,2,3,9,5,x", {"epoch": 9}),
        ("Ideal speedup,Speedup vs 4 GPUs,speedup,t", "2,1,1.5,9", {"speedup": 1.5}),
        ("t,Comm (s),Comp (s)", "9,−2,8", {"communication": -2, "compute": 8}),
        ("time,Bandwidth utilization (GB/s)", "9,0.85", {"bandwidth": 0.85}),
        ("T_MS,Comm_Ms,BW_GBIT/S", "9,5,8", {"epoch": 9e-3, "communication": 5e-3, "bandwidth": 1}),
    ],
)
def test_a_header_is_read_by_its_meaning_and_unit(tmp_path, header, row, expected):
    (study,) = read(tmp_path, f"World size,local batch,{header}\n2,32,{row}\n".replace(",", "\t"))
    row = study.rows.iloc[0]
    assert {name: row[name].value for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name,loss\na,3\n", "line 1: there is no column of GPUs among `name`, `loss`; write"),
        ("gpus,batch,DP time,DDP time\n1,32,9,8\n", "`DP time` and `DDP time` differ, so neither"),
        ("gpus,batch,it/s\n1,32,80\n", "nothing says what the figures of `gpus`, `batch`, `it/s`"),
        ("Batch,1 GPU,2 GPUs\n32,16,8\n", "nothing says what the figures of `1 GPU` are"),
        ("GPUs,1,1,2,2\nBatch,32,64,32,64\nTime,9,8,5,4\n", "nothing says what the figures of `1`"),
        ("gpus,batch,time_min\n1,32,1.5\n", "line 1: nothing says what the figures of `gpus`,"),
        ("gpus,batch,time\n1,32,soon\n", "line 2, column time: 'soon' is no epoch"),
        ("Nothing but a text,\nand another line.\n", "there is no table of times"),
        (HEADER + "\n", "there is no table of times"),
        ('gpus,batch,time\n1,"32,9\n', "is no CSV .* close its quotes"),
    ],
)
def test_what_is_not_read_is_refused_in_a_line(tmp_path, text, complaint):
    with pytest.raises(UserError, match=complaint) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value) and str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"{LONG}Average,,12.0,\n", "line 6: 'Average' is no number of GPUs; the row is left out"),
        (f"{LONG}4,32,fast,2\n", "line 6, column Time (s): 'fast' is no epoch that can be read"),
        (f"{LONG}2,32,11.0,\n", "line 6: another epoch of 2 x 32; both are left out"),
        *(
            (edited({(2, 128): {column: value}}), f"line 4{place}{value!r}")
            for column, place, values in (
                ("epoch_seconds", ", column epoch_seconds: ", ["-9.784", "0", "1e14", "1e9999999"]),
                ("printed_speedup", ", column printed_speedup: ", ["1e16", "1e-400"]),
                ("gpus", ": ", ["2.5", "two"]),
                ("batch_size", ": ", ["0", "1e13"]),
            )
            for value in values
        ),
    ],
)
def test_a_row_that_is_not_read_is_named_alone(tmp_path, text, note):
    (study,) = read(tmp_path, text)
    (lost,) = study.notes
    assert lost.startswith(note) and "left out" in lost and len(study.rows) >= 4


def test_what_one_table_states_holds_for_the_whole_file(tmp_path):
    tables = [LONG, LONG.replace("Time (s),Speedup", "Compute (s),Bandwidth (GB/s)")]
    (study,) = read(tmp_path, "DDP with 11.17M parameters\n\n" + "\n".join(tables))
    assert study.strategies == ["ddp"] and len(study.rows) == 4
    assert study.parameters == pytest.approx((11_165_000, 11_175_000))
    (study,) = read(tmp_path, "ResNet-18, 11,173,962 parameters\n\n" + LONG)
    assert study.parameters == (11_173_962,) * 2
    for words in ("11,17M", "11.17 million"):
        (study,) = read(tmp_path, f"{words} parameters\n\n" + LONG.replace(",", ";"))
        assert study.parameters == pytest.approx((11_165_000, 11_175_000))
    strong = LONG.replace("Batch", "Global batch") + "\n" + LONG
    assert [one.global_batch for one in read(tmp_path, strong)] == [True, False]
    both = "\n".join(f"{name}\n{LONG}" for name in ("DataParallel", "DistributedDataParallel"))
    assert read(tmp_path, both)[0].strategies == ["ddp", "dp"]


def test_each_sheet_of_a_workbook_is_a_table(tmp_path):
    frame = pd.DataFrame({"GPUs": [1, 2], "Batch size": [32, 32], "Time (s)": [16.25, 10.5]})
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        frame.to_excel(book, sheet_name="DP", index=False)
        frame.set_index("GPUs").to_excel(book, sheet_name="DDP")
    (study,) = read_folder(tmp_path / "book.xlsx")
    assert study.strategies == ["ddp", "dp"]
    assert values(study.rows["epoch"]) == [16.25, 10.5] * 2
    texts = {"Time (s)": ["16,250", "10,500"], "Speedup": ["1,000", "#DIV/0!"]}
    frame.assign(**texts).to_excel(tmp_path / "comma.xlsx", index=False)
    assert values(read_folder(tmp_path / "comma.xlsx")[0].rows["epoch"]) == [16.25, 10.5]
    (tmp_path / "no.xlsx").write_bytes(b"PK no")
    with pytest.raises(UserError, match=r"no\.xlsx cannot be read as a workbook"):
        read_folder(tmp_path / "no.xlsx")


def test_the_template_is_read_with_the_digits_printed(tmp_path):
    lines = [f"{line},x" for line in CLEAN.replace("resnet18-cifar,11173962", "net,").splitlines()]
    (tmp_path / "studies.yaml").write_text("clean: {hardware: 4 A100, doubts: [one run]}")
    (ours,) = read_folder(write(tmp_path, "\ufeff" + "\n".join(lines)))
    row = ours.rows.set_index(["gpus", "batch_size"]).loc[(2, 128)]
    assert row["speedup"] == (1.84, 0.001) and ours.parameters is None
    assert ours.about == {"hardware": "4 A100", "doubts": ["one run"]}
    (same,) = read(tmp_path, CLEAN.title().replace(",", ";").replace(".", ","))
    assert same.notes == [] and set(same.rows["status"]) == {"ok", "infeasible"}
    for name in ("epoch", "training", "speedup", "bandwidth"):
        assert same.rows[name].tolist() == ours.rows[name].tolist()
