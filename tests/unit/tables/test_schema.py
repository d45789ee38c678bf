"""The registry of tables: what is written is read again, and what is no table is named."""

import pandas as pd
import pytest

from scaling.core.errors import UserError
from scaling.tables import schema

KEYS = {"recipe": "007", "strategy": "NA", "gpus": 1, "batch_size": 8, "status": "ok"}


@pytest.mark.parametrize("content", [None, "", "recipe,strategy\ncourse,ddp\n"])
def test_a_broken_table_is_named(tmp_path, content):
    path = tmp_path / "timing.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=rf"{path} is not the table timing \(.*\); make it again"):
        schema.read("timing", path)


def test_a_table_that_is_not_there_is_as_one_without_rows(tmp_path):
    for name in schema.TABLES:
        path = tmp_path / f"{name}.csv"
        schema.write(name, schema.frame(name), path)
        none, read = getattr(schema.StudyTables("none", {}), name), schema.read(name, path)
        pd.testing.assert_frame_equal(none, read, check_dtype=False)
        truths = schema.TABLES[name].of_type("truth")
        pd.testing.assert_frame_equal(none[truths], read[truths])


FORMULAS = ["=1+1", "@now", "+1", "-1", "'=1", "\t=1"]


def test_no_text_is_a_formula_of_a_spreadsheet_and_each_is_read_as_it_was(tmp_path):
    path = tmp_path / "timing.csv"
    texts = [*FORMULAS, "a=1", "'quoted'"]
    schema.write(
        "timing", schema.frame("timing", [KEYS | {"status": text} for text in texts]), path
    )
    written = pd.read_csv(path)["status"].tolist()
    assert written == [*(f"'{text}" for text in FORMULAS), "a=1", "'quoted'"]
    assert schema.read("timing", path)["status"].tolist() == texts


def test_what_is_written_is_read_as_it_was(tmp_path):
    """Names like a number or like nothing; every digit; whole numbers with a gap; truths."""
    path = tmp_path / "speedup.csv"
    seconds = [0.1 + 0.2, 2.5e-5 / 3, *(n / 7919 for n in range(100)), None]
    table = pd.DataFrame(KEYS | {"epoch_seconds": seconds}, columns=schema.columns("speedup"))
    table.loc[1, ["recipe", "count", "within_spread"]] = ["1e3", 3.0, True]
    schema.write("speedup", table, path)
    assert path.read_text().splitlines()[2] == (
        f"1e3,NA,1,8,ok,{seconds[1]!r},,,3" + "," * 4 + "True" + "," * 4
    )
    back = schema.read("speedup", path)
    assert back.epoch_seconds.tolist()[:-1] == seconds[:-1]
    assert back.recipe.tolist()[:3] == ["007", "1e3", "007"]
    assert set(back.strategy) == {"NA"} and set(back.note) == {""}
    assert back.within_spread.tolist()[:3] == [False, True, False]
    assert back["count"].isna().tolist()[:3] == [True, False, True]
