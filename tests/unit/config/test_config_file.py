"""What YAML leaves open is refused, and damage of every kind gets one sentence."""

import os
from pathlib import Path

import pytest
import yaml

from examples import damage
from scaling.config import config
from scaling.config.config_file import read_config
from scaling.core.errors import UserError

DEMO = Path(__file__).parents[3] / "config/demo.yaml"
MUTANTS = int(os.environ.get("MUTANTS", "300"))
STRANGE = [
    *(*damage.STRANGE, 16**5000, -(10**309), 2**31, 2**40, 1e308, [{}] * 3000, [1] * 3000),
    *("~nouser/x", "n" * 300, "a\0b", "--help", "x\n", "{x}", {"a": {"b": [1]}}),
]


def test_damaged_values_are_refused_in_a_sentence_or_right():
    accepted = 0
    for mutant in damage.values(yaml.safe_load(DEMO.read_text()), MUTANTS, 0, STRANGE):
        try:
            config.check(mutant)
            accepted += 1
        except UserError as error:
            said = str(error)
            assert said.startswith(("the configuration is wrong: ", "there is no"))
    assert 0 < accepted < MUTANTS / 2


def test_damaged_text_is_refused_in_a_sentence_or_read(tmp_path):
    path = tmp_path / "mine.yaml"
    for content in damage.texts(DEMO.read_text(), MUTANTS, seed=0):
        path.write_bytes(content)
        try:
            config.check(read_config(path))
        except UserError as error:
            said = str(error)
            assert "\n" not in said


BOMB = "a0: &a0 [1, 2]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", r"line 2 has the key c, as another"),
        ("a: 1\na: 1\n", r"line 1 has the key a, as another"),
        (BOMB, r"more than 100,000 values"),
        ("a: &a [*a]\n", r"more than 100,000 values"),
        ("a: " + "[" * 5000, r"is no configuration"),
        ("a: 0x" + "f" * 5000 + "\nb: [", r"is no configuration"),
        ("- a\n", r"has no keys"),
        ("", r"has no keys"),
        ("x" * 200_000, r"is no file of at most 100,000 bytes"),
        (MERGES, r"more than 100,000 values"),
        ("a: " + "[" * 90_000, r"is no configuration"),
        ("a: 0x" + "f" * 5000, r"line 1 has a number of more than 100 digits"),
        ("a: 1" + ":1" * 40_000, r"line 1 has a number of more than 100 digits"),
        ("a: 2026-01-01\n", r"line 1 has a value of the kind timestamp"),
        ("a: !!set {b}\n", r"line 1 has a value of the kind set"),
        ("a: !mine 1\n", r"line 1 has a value of the kind !mine"),
    ],
)
def test_what_is_no_configuration_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=rf"mine\.yaml.*{sentence}"):
        read_config(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [([{}] * 3000, "grid.seeds"), ([16**5000], "a number of thousands of digits")],
    ids=["many", "large"],
)
def test_a_value_too_long_to_be_told_whole_is_not(seeds, sentence):
    document = yaml.safe_load(DEMO.read_text())
    document["grid"]["seeds"] = seeds
    with pytest.raises(UserError, match=sentence) as caught:
        config.check(document)
    assert len(str(caught.value)) < 2000
