"""Packages of measuring code that changed since a study's records."""

import pandas as pd
import pytest

from scaling.core import code_digest
from scaling.registry.engine import measuring_code
from scaling.report.provenance import age

NOW = code_digest.packages(*measuring_code("resident", "resnet18-cifar"))


def runs(packages):
    row = {
        "status": "ok",
        "commit": "abc",
        "engine": "resident",
        "model": "resnet18-cifar, width 64",
    }
    words = "; ".join(f"{name} {code}" for name, code in packages.items())
    return pd.DataFrame([{**row, "code_packages": words}])


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        (NOW, "this version’s code"),
        (NOW | {"training": "0" * 16}, "this version measures by other code (training)"),
        (NOW | {"gone": "0" * 16}, "this version measures by other code (gone)"),
        ({}, "older measuring code"),
    ],
)
def test_age_names_the_packages_that_changed(packages, words):
    assert {"training", "models", "instruments", "launch", "extras"} <= NOW.keys()
    assert age(runs(packages)) == [words]


@pytest.mark.parametrize(
    "changed", [{"model": "gone.py:small"}, {"model": "gone.part:small"}, {"engine": "gone"}]
)
def test_code_of_a_model_or_engine_that_is_gone_is_not_compared(changed):
    assert age(runs(NOW).assign(**changed)) == [
        "its model or engine is not here to compare its code"
    ]
