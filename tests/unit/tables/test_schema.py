"""Tables are read as they were written. A file that is no table is refused."""

import pandas as pd
import pytest

from scaling.core.errors import UserError
from scaling.tables import schema

FORMULAS = ["=1+1", "@now", "+1", "-1", "'=1", "\t=1"]


@pytest.mark.parametrize("content", [None, "", "recipe,strategy\ncourse,ddp\n"])
def test_broken_table_is_named(tmp_path, content):
    path = tmp_path / "timing.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=rf"{path} is not the table timing \(.*\); make it again"):
        schema.read("timing", path)


def test_missing_table_is_as_one_without_rows(tmp_path):
    schema.write({name: schema.frame(name) for name in schema.TABLES}, tmp_path, "mine")
    read, none = schema.read_study("mine", tmp_path.rglob("*.csv")), schema.StudyTables("", {})
    for name, table in schema.TABLES.items():
        pair = [getattr(one, name) for one in (none, read)]
        pd.testing.assert_frame_equal(*pair, check_dtype=False, obj=name)
        truths = [column for column, kind in table.types.items() if kind == "truth"]
        pd.testing.assert_frame_equal(*(one[truths] for one in pair))


def test_table_reads_as_written_without_formulas(tmp_path):
    """Names look like numbers or NaN. There are digits, integers with gaps, and booleans."""
    keys = {"recipe": "007", "strategy": "NA", "gpus": 1, "batch_size": 8}
    floats = [0.1 + 0.2, 2.5e-5 / 3, *(n / 7919 for n in range(100)), None]
    table = pd.DataFrame(keys | {"drift": floats}, columns=[*schema.TABLES["costs"].types])
    texts = [*FORMULAS, "a=1", "'quoted'"]
    table.loc[1, ["recipe", "peak_memory_bytes", "settled"]] = ["1e3", 3.0, True]
    table.loc[2 : 1 + len(texts), "switches"] = texts
    schema.write({"costs": table}, tmp_path, "mine")
    path = tmp_path / "mine/costs.csv"
    row = keys | {"recipe": "1e3", "drift": floats[1], "peak_memory_bytes": 3, "settled": True}
    line = ",".join(str(row.get(name, "")) for name in schema.TABLES["costs"].types)
    assert path.read_text().splitlines()[2] == line
    written = pd.read_csv(path)["switches"].dropna().tolist()
    assert written == [*(f"'{text}" for text in FORMULAS), "a=1", "'quoted'"]
    back = schema.read("costs", path)
    assert back.drift.tolist()[:-1] == floats[:-1]
    assert back.recipe.tolist()[:3] == ["007", "1e3", "007"] and set(back.strategy) == {"NA"}
    assert back.switches.tolist()[:11] == ["", "", *texts, ""]
    assert back.settled.tolist()[:3] == [False, True, False]
    assert back["peak_memory_bytes"].isna().tolist()[:3] == [True, False, True]
