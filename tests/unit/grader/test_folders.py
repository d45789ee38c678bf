"""The files of published studies, as rules need them."""

from pathlib import Path

import pytest

from grader.folders import Folders

STUDIES = Path(__file__).parents[3] / "studies"


def test_a_study_is_found_by_the_name_that_its_times_have():
    folders = Folders(STUDIES, reserved="mine")
    made = folders.tables("results", "timing", "speedup")({})
    names = {Path(path).parent.name for path in made}
    assert len(made) == 2 * len(names) > 0
    for name in names:
        folder = folders.of({"study": name})
        assert str(folder) in folders.all
        assert f"{folder}/timings.csv" in folders.sources({"study": name})
        assert set(folders.sources({"study": name})) <= set(folders.files())


def test_a_study_that_is_called_as_the_configurations_is_refused(capsys):
    folders = Folders(STUDIES, reserved="mine")
    taken = Path(folders.tables("results", "timing")({})[0]).parent.name
    with pytest.raises(SystemExit):
        Folders(STUDIES, reserved=taken).of({"study": taken})
    assert f"both have a study {taken}" in capsys.readouterr().err
