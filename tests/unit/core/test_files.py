import errno
import os

import pytest

from scaling.core import files
from scaling.core.errors import UserError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(ValueError, match="midway"), files.atomic_path(target) as temporary:
        temporary.write_text("half")
        raise ValueError("midway")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_one_sentence_that_names_the_file(tmp_path):
    target = tmp_path / "table.csv"
    with pytest.raises(UserError, match=r"cannot write .*table\.csv: No space left on device"):
        with files.atomic_path(target):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_document_is_one_sentence(tmp_path):
    made = tmp_path / "run.json"

    def refused(sentence):
        with pytest.raises(UserError, match=rf"^{made} .*{sentence}") as caught:
            files.read_json(made)
        assert "\n" not in str(caught.value)
        made.unlink(missing_ok=True) if not made.is_dir() else made.rmdir()

    refused("does not exist")
    made.mkdir()
    refused("is no file of at most")
    os.mkfifo(made)
    refused("is no file of at most")
    made.symlink_to(made)
    refused("symbolic links")
    with made.open("wb") as file:
        file.truncate(100_000_000)
    refused("is no file of at most 50,000,000 bytes")
    for content, sentence in (
        ('{"a": 1}'.encode("utf-16"), "cannot be read as UTF-8 text"),
        (b'{"status": ', "is not valid JSON .* delete it"),
        (b'{"a": 1e999}', "is not valid JSON"),
        (b'{"a": "\\ud800"}', "is not valid JSON"),
        (b'{"a": 1, "a": 2}', "a key twice among a, a"),
    ):
        made.write_bytes(content)
        refused(sentence)
