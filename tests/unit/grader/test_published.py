"""Reading a published study: what is accepted, and how each mistake in the file is named."""

import csv
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.grader.published_study import (
    CLEAN,
    HEADER,
    TRAIN_IMAGES,
    edited,
    write,
)
from grader import study as published
from grader.findings import judge
from scaling.core.errors import UserError

SWEEP = "study,gpus,batch_size,epoch_seconds\n"


def read(folder, text=CLEAN, **beside):
    return published.read_folder(write(folder, text, **beside))


def test_a_study_is_read_with_the_digits_that_were_printed(tmp_path):
    """A column more and a byte order mark do not matter, nor does what nobody stated."""
    lines = [f"{line},x" for line in CLEAN.replace("11173962", "").splitlines()]
    (found,) = read(tmp_path, "\ufeff" + "\n".join(lines))
    rows = found.rows.set_index(["gpus", "batch_size"])
    assert rows.loc[(2, 128)].printed_speedup.as_tuple() == Decimal("1.840").as_tuple()
    assert rows.loc[(1, 128)].printed_utilization_percent is None
    assert found.parameters is None
    assert found.description.hardware == "not stated"
    (tmp_path / "studies.yaml").write_text("clean: {hardware: 4 A100, doubts: [one run]}")
    description = read(tmp_path)[0].description
    assert (description.hardware, description.doubts) == ("4 A100", ["one run"])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("epoch_seconds", ["fast", "-9.784", "0", "1e14", "1e-300", "1e999999999"]),
        ("printed_speedup", ["1e16", "-1e16", "1e999999999", "1e-400", "0e999", "1,84"]),
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
            read(tmp_path, text)
        where = f"{tmp_path}/timings.csv, line 4, column {column}: {value!r}: "
        assert str(refused.value).startswith(where)


@pytest.mark.parametrize(
    ("text", "beside", "complaint"),
    [
        (CLEAN.replace("_without_loading", ""), {}, "line 1: `epoch_seconds` and `epoch_seconds`"),
        (CLEAN.replace(",1,,,,,5,17.9", ",1,,,,5,17.9"), {}, "line 2: .* not as many fields"),
        (edited({(2, 128): {"epoch_seconds": ""}}), {}, "line 4.* status ok needs a time"),
        (edited({(2, 128): {"status": "oom"}}), {}, "line 4.* status oom has no time"),
        (CLEAN + CLEAN.splitlines()[3], {}, "line 9: clean has ddp, 2 GPUs, batch 128 a second"),
        (edited({(2, 512): {"parameters": "1"}}), {}, "clean has two numbers of parameters"),
        (HEADER + "\n", {}, "has no row"),
        (CLEAN, {"batch_sweep": SWEEP + "other,1,64,19.0"}, "batch_sweep.csv: .* no study other"),
    ],
)
def test_what_makes_no_study_is_named(tmp_path, text, beside, complaint):
    with pytest.raises(UserError, match=complaint):
        read(tmp_path, text, **beside)


def test_a_folder_without_timings_or_with_a_wrong_description_is_named(tmp_path):
    with pytest.raises(UserError, match=r"timings\.csv does not exist"):
        published.read_folder(tmp_path)
    write(tmp_path)
    (tmp_path / "studies.yaml").write_text("clean: {gpu: 4 A100}")
    with pytest.raises(UserError, match=r"studies\.yaml does not describe studies"):
        published.read_folder(tmp_path)


@given(
    line=st.integers(0, 7),
    position=st.integers(0, len(HEADER.split(",")) - 1),
    text=st.text() | st.floats().map(str) | st.integers().map(str),
)
@settings(max_examples=15, deadline=None)
def test_whatever_stands_in_a_field_it_is_read_or_refused_in_one_sentence(line, position, text):
    rows = [row.split(",") for row in CLEAN.splitlines()]
    rows[line][position] = text
    with TemporaryDirectory() as folder:
        path = Path(folder, "timings.csv")
        with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
            csv.writer(file).writerows(rows)
        studies, refusal = [], ""
        try:
            studies = published.read_folder(Path(folder))
        except UserError as error:
            refusal = str(error)
        assert bool(studies) != ("timings.csv" in refusal)
        for found in studies:
            judge(found, TRAIN_IMAGES)
