"""Which variants of our networks have an accuracy that a document prints."""

import pandas as pd
import pytest

from grader import judged

FLOATS, BIASES = "weights+activations", "weights+activations+bias"
SOUND, SCALES = judged.SOUND, "activation_scale+bias_scale"
LOWEST = [
    *(("weights", SOUND, 55.0), (FLOATS, SOUND, 54.0), (FLOATS, "255_for_127", 54.5)),
    *((FLOATS, "activation_scale", 30.0), (BIASES, SCALES, 20.0)),
]
"""By stage and mistakes that of one network; the other's is 2 points above."""


@pytest.mark.parametrize(
    ("stage", "printed", "alike"),
    [
        ("weights", "58.5", (SOUND, "55.00–57.00", "+1.50")),
        (FLOATS, "55", (f"{SOUND}; 255_for_127", "54.00–56.00; 54.50–56.50", "")),
        (FLOATS, "32", ("activation_scale", "30.00–32.00", "")),
        (BIASES, "19.9", (SCALES, "20.00–22.00", "−0.10")),
        ("int4", "50", ("", "", "")),
        (FLOATS, None, ("", "", "")),
    ],
)
def test_a_printed_accuracy_is_of_every_variant_that_has_it_or_near_one(stage, printed, alike):
    rows = [("none", 0, *of, accuracy + more) for *of, accuracy in LOWEST for more in (0, 2)]
    one = pd.DataFrame({"stage": [stage], "accuracy_percent": [printed]}, index=[7], dtype=object)
    (found,) = judged.beside(one, pd.DataFrame(rows, columns=judged.NETWORKS)).to_dict("records")
    assert (found["variants"], found["ranges"], found["beyond"]) == alike
