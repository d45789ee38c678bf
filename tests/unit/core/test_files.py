import errno

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


def test_numbers_that_json_lacks_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(tmp_path / "run.json", {"loss": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_broken_record_says_what_to_do(tmp_path):
    broken = tmp_path / "run.json"
    broken.write_text('{"status": ')
    with pytest.raises(UserError, match=r"run\.json is not valid JSON .* delete it"):
        files.read_json(broken)


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(UserError, match=r"run\.json does not exist"):
        files.read_json(tmp_path / "run.json")
