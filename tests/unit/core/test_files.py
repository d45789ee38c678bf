"""A file is written completely or not at all. An unreadable file is refused in one sentence."""

import errno
import os
from pathlib import Path

import pytest

from scaling.core import files
from scaling.core.errors import UserError

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (ValueError("midway"), ValueError, "midway"),
        (FULL, UserError, r"cannot write .*table\.csv: No space left on device"),
    ],
)
def test_failed_write_leaves_only_the_old_file(tmp_path, error, raised, sentence):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(raised, match=sentence), files.atomic_path(target) as temporary:
        temporary.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is no file of at most"),
        (os.mkfifo, "is no file of at most"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (lambda path: path.touch() or os.truncate(path, 10**8), "at most 50,000,000 bytes"),
        ('{"a": 1}'.encode("utf-16"), "cannot be read as UTF-8 text"),
        (b'{"status": ', "is not valid JSON .*: restore it$"),
        (b'{"a": 1e999}', "is not valid JSON"),
        (b'{"a": "\\ud800"}', "is not valid JSON"),
    ],
)
def test_invalid_document_is_refused_in_one_sentence(tmp_path, make, sentence):
    made = tmp_path / "run.json"
    made.write_bytes(make) if isinstance(make, bytes) else make(made)
    with pytest.raises(UserError, match=rf"^{made} .*{sentence}") as caught:
        files.read_json(made)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_log_above_its_limit_keeps_both_ends(tmp_path, size):
    log = tmp_path / "run.log"
    log.write_text(f"begin\n{'x' * size}\nerror: end\n")
    files.bound_log(log)
    lines = log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("begin", "error: end")
    left_out = [line for line in lines if "bytes of this log are left out" in line]
    assert len(left_out) == (size > 1e6) and log.stat().st_size < 1_000_100


@pytest.mark.parametrize(
    ("damaged", "repeated"),
    [("results/runs/run.json", True), ("studies/results/run.json", False), ("run.json", False)],
)
def test_only_what_jobs_make_may_be_deleted(tmp_path, monkeypatch, damaged, repeated):
    """The clone itself may be in a folder of the name results."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path / "results")
    assert ("delete it" in files.to_do(Path(damaged).absolute())) == repeated
