"""Reading a published study: what is accepted, and how each mistake in the file is named."""

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.published_study import CLEAN, HEADER, edited, of_repository, study, write
from scaling.audit.derive import derive
from scaling.core.errors import UserError
from scaling.published import study as published
from scaling.published.timing import published_timing

SECONDS = "the seconds of an epoch, 0.000001 to 1,000,000,000, or empty"
FIGURE = "a number below 10^15 with at most 30 decimals, or empty"
COUNT = "a whole number, 1 to 1,000,000,000,000"
SWEEP = "study,gpus,batch_size,epoch_seconds\n"


def read(folder: Path, text: str = CLEAN, **beside: str):
    return published.read_folder(write(folder, text, **beside))


def refusal(folder: Path, text: str = CLEAN, **beside: str) -> str:
    with pytest.raises(UserError) as refused:
        read(folder, text, **beside)
    return str(refused.value)


def test_printed_figures_keep_the_digits_they_were_printed_with(tmp_path):
    (found,) = read(tmp_path)
    printed = found.rows.set_index(["gpus", "batch_size"]).loc[(2, 128)]
    assert printed.printed_speedup == Decimal("1.840")
    assert printed.printed_speedup.as_tuple().exponent == -3
    single = found.rows.set_index(["gpus", "batch_size"]).loc[(1, 128)]
    assert single.printed_utilization_percent is None


def test_a_column_more_and_a_byte_order_mark_do_not_matter(tmp_path):
    lines = [f"{line},x" for line in CLEAN.splitlines()]
    assert len(read(tmp_path, "\ufeff" + "\n".join(lines))[0].rows) == 7


def test_a_missing_column_is_named(tmp_path):
    text = CLEAN.replace("epoch_seconds_without_loading", "wihtout_loading")
    assert refusal(tmp_path, text) == (
        f"{tmp_path}/timings.csv, line 1: there is no column epoch_seconds_without_loading; add it"
    )


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        *[("epoch_seconds", value, SECONDS) for value in ("fast", "-9.784", "0", "nan", "1e14")],
        *[("epoch_seconds", value, SECONDS) for value in ("1e-300", "1e999999999")],
        *[("printed_speedup", value, FIGURE) for value in ("1e16", "-1e16", "1e-400", "0e999")],
        ("printed_speedup", "1,84", FIGURE),
        *[("gpus", value, "a number of GPUs, 1 to 1,000,000") for value in ("1000001", "2.5", "")],
        *[("batch_size", value, COUNT) for value in ("0", "1e13", "")],
        *[("parameters", "11M", f"{COUNT}, or empty"), ("count", "0", f"{COUNT}, or empty")],
        ("strategy", "fsdp", "one of dp, ddp"),
        ("status", "failed", "one of ok, oom, oom_host, infeasible, diverged, timeout"),
        ("study", "../up", "a name of letters, digits, '.', '_', '-'"),
    ],
)
def test_a_wrong_field_is_named_by_file_line_and_column(tmp_path, column, value, wanted):
    value_csv = f'"{value}"' if "," in value else value
    message = refusal(tmp_path, edited({(2, 128): {column: value_csv}}))
    assert message == (
        f"{tmp_path}/timings.csv, line 4, column {column}: {value!r} should be {wanted}"
    )


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named(tmp_path, mark, name):
    assert refusal(tmp_path, CLEAN.replace(",", mark)) == (
        f"{tmp_path}/timings.csv, line 1: the columns are separated by {name}; "
        "separate them by commas"
    )


def test_a_line_with_a_field_too_few_is_named(tmp_path):
    lines = CLEAN.splitlines()
    lines[2] = lines[2].rpartition(",")[0]
    assert "timings.csv, line 3: the line has not as many fields" in refusal(
        tmp_path, "\n".join(lines)
    )


def test_an_ok_cell_needs_a_time_and_one_out_of_memory_has_none(tmp_path):
    assert "line 4, column epoch_seconds: status ok needs a time" in refusal(
        tmp_path, edited({(2, 128): {"epoch_seconds": ""}})
    )
    assert "line 4, column epoch_seconds: status oom has no time" in refusal(
        tmp_path, edited({(2, 128): {"status": "oom"}})
    )


def test_a_cell_that_comes_twice_is_named(tmp_path):
    twice = CLEAN + CLEAN.splitlines()[3] + "\n"
    assert "line 9: clean has ddp, 2 GPUs, batch 128 a second time" in refusal(tmp_path, twice)


def test_two_models_need_two_studies(tmp_path):
    text = edited({(2, 512): {"parameters": "11689512"}})
    assert "line 5, column parameters: clean has two of them" in refusal(tmp_path, text)


def test_a_folder_without_timings_and_a_table_without_rows_are_named(tmp_path):
    with pytest.raises(UserError, match=r"timings\.csv does not exist"):
        published.read_folder(tmp_path)
    assert "has no row" in refusal(tmp_path, HEADER + "\n")


def test_a_study_of_another_file_must_be_one_of_the_timings(tmp_path):
    message = refusal(tmp_path, batch_sweep=SWEEP + "clean,1,64,19.0\nother,1,64,19.0\n")
    assert f"{tmp_path}/batch_sweep.csv, line 3, column study" in message
    assert "no study other" in message


def test_a_batch_sweep_is_on_one_gpu(tmp_path):
    message = refusal(tmp_path, batch_sweep=SWEEP + "clean,2,64,19.0\n")
    assert "line 2, column gpus: '2' should be 1, as these are times on one GPU" in message


def test_two_folders_cannot_hold_one_study(tmp_path):
    folders = [write(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(UserError, match=r"/a and .*/b both have a study clean"):
        published.by_name(folders)


def test_a_published_study_cannot_have_the_name_of_the_measured_one(tmp_path):
    with pytest.raises(UserError, match="has a study clean, the name of the measured one"):
        published.by_name([write(tmp_path)], reserved="clean")
    assert set(published.by_name([write(tmp_path)], reserved="mine")) == {"clean"}


def test_a_description_is_optional_and_a_wrong_one_is_named(tmp_path):
    assert read(tmp_path)[0].description.hardware == "not stated"
    (tmp_path / "studies.yaml").write_text("clean: {hardware: 4 A100, doubts: [one run]}")
    description = read(tmp_path)[0].description
    assert (description.hardware, description.doubts) == ("4 A100", ["one run"])
    (tmp_path / "studies.yaml").write_text("clean: {gpu: 4 A100}")
    assert "studies.yaml does not describe studies" in refusal(tmp_path)


def test_a_published_time_becomes_a_row_of_the_timing_table(tmp_path):
    timing = study(tmp_path).tables.timing
    row = timing[(timing.gpus == 4) & (timing.batch_size == 512)].iloc[0]
    assert (row.recipe, row.strategy, row.status) == ("resnet18-cifar", "ddp", "ok")
    assert (row.epoch_seconds, row.epoch_seconds_without_loading) == (4.35, 4.3)
    assert row.loader_seconds == pytest.approx(0.05)
    assert (row.epoch_seconds_min, row.epoch_seconds_max, row["count"]) == (4.3, 4.4, 5)
    assert (row.iterations, row.samples) == (25, 50_000)  # 50,000 / (4 · 512), rounded up


def test_a_sweep_adds_cells_and_never_replaces_a_time(tmp_path):
    sweep = SWEEP + "clean,1,128,19.0\nclean,1,256,17.5\n"
    (source,) = read(tmp_path, batch_sweep=sweep)
    timing = published_timing(source, 50_000).set_index(["gpus", "batch_size"]).epoch_seconds
    assert (timing[1, 128], timing[1, 256]) == (18.0, 17.5)
    assert len(timing) == 8


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
            derive(found, 50_000)


def test_nothing_is_derived_from_what_was_printed():
    found = of_repository("lab5-a40-ddp").found
    none = found.source.rows.assign(**dict.fromkeys(published.PRINTED.values()))
    without = derive(replace(found.source, rows=none), 50_000)
    for table in ("timing", "speedup", "communication", "bandwidth", "prediction"):
        pd.testing.assert_frame_equal(getattr(without, table), getattr(found, table))
