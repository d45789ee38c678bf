"""The registry of tables: what is written is read again, and what is no table is named."""

from pathlib import Path

import pandas as pd
import pytest

from scaling.core.errors import UserError
from scaling.tables import schema

KEYS = {"recipe": "007", "strategy": "NA", "gpus": 1, "batch_size": 8, "status": "ok"}


def timing(**columns) -> pd.DataFrame:
    """Rows of timing.csv with these columns; each of the others has no value."""
    count = len(next(iter(columns.values())))
    return pd.DataFrame(dict.fromkeys(schema.columns("timing"), [None] * count) | KEYS | columns)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "does not exist"),
        ("", "is not a CSV table"),
        ("recipe,strategy\ncourse,ddp\n", "has no column gpus, batch_size, status"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, content: str | None, sentence: str):
    path = tmp_path / "timing.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=rf"{path} {sentence}"):
        schema.read("timing", path)


def test_names_like_a_number_or_like_nothing_are_kept(tmp_path: Path):
    schema.write("timing", timing(recipe=["007", "1e3"]), tmp_path / "timing.csv")
    back = schema.read("timing", tmp_path / "timing.csv")
    assert back.recipe.tolist() == ["007", "1e3"]
    assert back.strategy.tolist() == ["NA", "NA"]


def test_every_digit_of_a_time_survives_the_file(tmp_path: Path):
    seconds = [0.1 + 0.2, 2.5e-5 / 3, *(n / 7919 for n in range(2000))]
    schema.write("timing", timing(epoch_seconds=seconds), tmp_path / "timing.csv")
    assert schema.read("timing", tmp_path / "timing.csv").epoch_seconds.tolist() == seconds


def test_whole_numbers_stay_whole_beside_a_gap_and_what_is_empty_has_its_types_value(tmp_path):
    path = tmp_path / "speedup.csv"
    table = pd.DataFrame(dict.fromkeys(schema.columns("speedup"), [None] * 2) | KEYS)
    table["count"], table["within_spread"] = [3.0, None], [True, None]
    schema.write("speedup", table, path)
    assert path.read_text().splitlines()[1] == "007,NA,1,8,ok,,,,3" + "," * 12 + "True,"
    back = schema.read("speedup", path)
    assert back.within_spread.tolist() == [True, False]
    assert back.note.tolist() == ["", ""]
    assert back["count"].isna().tolist() == [False, True]
