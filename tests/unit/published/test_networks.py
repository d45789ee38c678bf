"""Which variants of our networks have an accuracy that a document prints."""

import pandas as pd
import pytest

from scaling.core import files
from scaling.core.errors import UserError
from scaling.published import networks

FLOATS, BIASES = "weights+activations", "weights+activations+bias"


@pytest.fixture
def ours(tmp_path):
    """Two networks: 55 and 57 % as floats, 54 and 56 % as integers, some mistaken."""
    variants = {
        "weights": (55.0, {"activation_bits": None}),
        FLOATS: (54.0, {"bias": "float"}),
        "255": (54.5, {"bias": "float", "mistake": "255_for_127"}),
        "scale": (30.0, {"bias": "float", "mistake": "activation_scale"}),
        "both": (20.0, {"mistakes": ["activation_scale", "bias_scale"]}),
    }
    for name, (accuracy, scheme) in variants.items():
        for seed in (0, 1):
            record = {
                **{"seed": seed, "variant": name, "scheme": scheme, "test_images": 100},
                **{"accuracy_percent": accuracy + 2 * seed, "layers": [{"layer": "fc"}]},
                **{"float32": {"accuracy_percent": 55.0 + 2 * seed}},
                "classes": {"labels": "", "float32": "", "variant": ""},
            }
            files.write_json(tmp_path / name / f"{seed}.json", record)
    return networks.accuracies(sorted(tmp_path.rglob("*.json")))


@pytest.mark.parametrize(
    ("stage", "printed", "alike"),
    [
        ("float32", "56.1", ("no mistake", "55.00–57.00", "")),
        ("weights", "58.5", ("no mistake", "55.00–57.00", "+1.50")),
        (FLOATS, "55", ("no mistake; 255_for_127", "54.00–56.00; 54.50–56.50", "")),
        (FLOATS, "35.5", ("activation_scale", "30.00–32.00", "+3.50")),
        (BIASES, "19.9", ("activation_scale+bias_scale", "20.00–22.00", "−0.10")),
        ("int4", "50", ("", "", "")),
        (FLOATS, None, ("", "", "")),
    ],
)
def test_a_printed_accuracy_is_of_every_variant_that_has_it_or_near_one(
    ours, stage, printed, alike
):
    rows = pd.DataFrame({"stage": [stage], "accuracy_percent": [printed]}, index=[7], dtype=object)
    (found,) = networks.beside(rows, ours).to_dict("records")
    assert (found["variants"], found["ranges"], found["beyond"]) == alike


def test_networks_of_the_lab_are_those_with_its_biases(tmp_path):
    for name, biases in (("all", "all"), ("last", "last"), ("none", "none")):
        section = {"quantization": {"biases": biases}}
        files.write_json(tmp_path / name / "config.yaml", section)
    files.write_json(tmp_path / "older/config.yaml", {"quantization": {}, "study": "older"})
    assert networks.of_the_lab(tmp_path) == [tmp_path / "last", tmp_path / "none"]
    (tmp_path / "last/config.yaml").write_text("a: [")
    with pytest.raises(UserError, match="is no configuration"):
        networks.of_the_lab(tmp_path)
