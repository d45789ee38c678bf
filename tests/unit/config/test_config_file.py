"""What YAML leaves open is refused, and damage of every kind gets one sentence."""

import os
from pathlib import Path

import pytest
import yaml

from examples import damage
from scaling.config import config
from scaling.config.stored import read_config, recipes_of
from scaling.core.errors import UserError

DEMO = Path(__file__).parents[3] / "config/demo.yaml"
MUTANTS = int(os.environ.get("MUTANTS", "30"))


STRANGE = [
    *(*damage.STRANGE, 2**31, 2**40, 1e308, [{}] * 3000, [1] * 3000),
    *("~nouser/x", "n" * 300, "a\0b", "--help", "x\n", "{x}", {"a": {"b": [1]}}),
]


def test_a_recipe_given_again_is_another_and_one_without_an_engine_is_changed():
    tuned = {"engine": "resident", "compile": True, "muon": 0.1}
    below = {"recipes": {"tuned": tuned, "plain": {"engine": "eager"}}}
    changed = recipes_of([below, {}, {"recipes": {"tuned": {"compile": False}}}])
    assert changed == below["recipes"] | {"tuned": tuned | {"compile": False}}
    for whole in ({"engine": "resident"}, {"base": "plain"}, {"command": "train {gpus}"}):
        assert recipes_of([below, {"recipes": {"tuned": whole}}])["tuned"] == whole
    assert recipes_of([below, {"recipes": ["tuned"]}]) == ["tuned"]


def test_damaged_values_are_refused_in_a_sentence_or_right():
    accepted = 0
    for mutant in damage.values(yaml.safe_load(DEMO.read_text()), MUTANTS, 0, STRANGE):
        try:
            config.check(mutant)
            accepted += 1
        except UserError as error:
            said = str(error)
            assert said.startswith(("the configuration is wrong:", "there is no"))
    assert 0 < accepted < MUTANTS / 2


BOMB = "a0: &a0 [1, 2]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", r"line 2 has the key c, as another"),
        (BOMB, r"more than 100,000 values"),
        ("a: " + "[" * 500, r"is no configuration"),
        ("a: 0x" + "f" * 5000 + "\nb: [", r"is no configuration"),
        ("- a\n", r"has no keys"),
        ("a: 1\nb: [1\nc: 2\n", r"line 3: expected ',' or ']'"),
        ("a:\n\tb: 1\n", r"line 2: found character '\\t'"),
        (b"a: 1\nb: M\xfcller\n", r"cannot be read as UTF-8 text \(line 2, byte 9: invalid start"),
        ("x" * 200_000, r"is no file of at most 100,000 bytes"),
        ("a: 1" + ":1" * 40_000, r"line 1 has a number of more than 100 digits"),
        ("a: 2026-01-01\n", r"line 1 has a value of the kind timestamp"),
        ("a: !mine 1\n", r"line 1 has a value of the kind !mine"),
    ],
)
def test_what_is_no_configuration_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=rf"mine\.yaml.*{sentence}"):
        read_config(tmp_path / "mine.yaml")


ENDLESS = {
    "grid seeds": ([{}] * 3000, "grid.seeds"),
    "grid batch_sizes": (list(range(1, 1001)), "grid asks for 200,000 runs"),
    "dataset train_images": (10**90, "dataset.train_images is .*: it should be less than"),
    "dataset path": ("x" * 100_000, "the configuration is wrong: "),
    "quantization seeds": (list(range(10_000)), "quantization.seeds is .* at most 1000 items"),
    "recipes plain": ({"engine": "x" * 100_000}, "the configuration is wrong: "),
}


@pytest.mark.parametrize("place", ENDLESS)
def test_a_value_without_end_is_refused_in_a_sentence_with_an_end(place):
    document = yaml.safe_load(DEMO.read_text())
    section, key = place.split()
    value, sentence = ENDLESS[place]
    document["grid"]["repeats"] = 100
    document.setdefault(section, {})[key] = value
    with pytest.raises(UserError, match=sentence) as caught:
        config.check(document)
    assert len(str(caught.value)) < 1100
