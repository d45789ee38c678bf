"""Which tables a study has, by the records that it has."""

from examples.configurations import shipped
from scaling.config import stored
from scaling.tables.schema import StudyFiles


def test_study_has_tables_of_its_records(tmp_path):
    config = shipped("demo.yaml")
    first, second, *others = stored.records(config)["runs"]
    files, remedies = StudyFiles(config, "x", is_stored=False), "<results>/tables/remedies.csv"
    assert files.runs({}) == [f"x/{path}" for path in (first, second, *others)]
    assert remedies in files.tables()
    (tmp_path / second).parent.mkdir(parents=True)
    (tmp_path / second).touch()
    files = StudyFiles(config | {"partial": True}, str(tmp_path), is_stored=False)
    assert files.runs({}) == [str(tmp_path / second)]
    assert remedies not in files.tables() and not files.records["convergence"]
    assert "<results>/tables/demo/timing.csv" in files.tables()
