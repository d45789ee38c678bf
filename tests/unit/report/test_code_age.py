"""Packages of measuring code that changed after a study's records were written."""

import pandas as pd
import pytest

from scaling.core import code_digest
from scaling.registry.engine import measuring_code
from scaling.report.provenance import age

NOW = code_digest.packages(*measuring_code("resident", "resnet18-cifar"))
RUN = {"status": "ok", "commit": "abc", "engine": "resident", "model": "resnet18-cifar, width 64"}
ABSENT = "its model or engine is not here to compare its code"


@pytest.mark.parametrize(
    ("packages", "changed", "words"),
    [
        (NOW, {}, "this version’s measuring code"),
        (NOW | {"training": "0" * 16}, {}, "this version measures by other code (training)"),
        (NOW | {"gone": "0" * 16}, {}, "this version measures by other code (gone)"),
        ({}, {}, "older measuring code"),
        (NOW, {"model": "gone.py:small"}, ABSENT),
        (NOW, {"model": "gone.part:small"}, ABSENT),
        (NOW, {"engine": "gone"}, ABSENT),
    ],
)
def test_age_names_the_packages_that_changed(packages, changed, words):
    assert {"training", "models", "instruments", "launch", "extras"} <= NOW.keys()
    code = "; ".join(f"{name} {digest}" for name, digest in packages.items())
    assert age(pd.DataFrame([RUN | changed | {"code_packages": code}])) == [words]
