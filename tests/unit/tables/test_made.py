"""Which tables a study has, by the records that it has."""

from examples.configurations import shipped
from scaling.config import stored
from scaling.tables.made import Made


def test_a_study_has_the_tables_of_the_records_it_asks_for_or_if_partial_of_those_there(tmp_path):
    config = shipped("demo.yaml")
    first, second, *others = stored.records(config)["runs"]
    made, remedies = Made(config, "x", is_stored=False), "<results>/tables/remedies.csv"
    assert made.runs({}) == [f"x/{path}" for path in (first, second, *others)]
    assert remedies in made.tables()
    (tmp_path / second).parent.mkdir(parents=True)
    (tmp_path / second).touch()
    made = Made(config | {"partial": True}, str(tmp_path), is_stored=False)
    assert made.runs({}) == [str(tmp_path / second)] == made.there([first, second])
    assert remedies not in made.tables() and not made.records["convergence"]
    assert "<results>/tables/demo/timing.csv" in made.tables()
