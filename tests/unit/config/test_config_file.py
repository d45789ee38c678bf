"""What YAML leaves open is refused, and damage of every kind gets one sentence."""

import os

import pytest

from examples import configurations
from examples.configurations import shipped
from scaling.config import config
from scaling.config.stored import read_config, recipes_of
from scaling.core.errors import UserError

MUTANTS = int(os.environ.get("MUTANTS", "30"))
STRANGE = [
    *(
        *configurations.STRANGE,
        2**31,
        2**40,
        10**90,
        1e308,
        [{}] * 3000,
        [1] * 3000,
        list(range(10_000)),
    ),
    *("~nouser/x", "n" * 300, "x" * 100_000, "a\0b", "--help", "x\n", "{x}", {"a": {"b": [1]}}),
]


def test_recipe_with_an_engine_replaces_and_without_changes():
    tuned = {"engine": "resident", "compile": True, "muon": 0.1}
    below = {"recipes": {"tuned": tuned, "plain": {"engine": "eager"}}}
    changed = recipes_of([below, {}, {"recipes": {"tuned": {"compile": False}}}])
    assert changed == below["recipes"] | {"tuned": tuned | {"compile": False}}
    for whole in ({"engine": "resident"}, {"base": "plain"}, {"command": "train {gpus}"}):
        assert recipes_of([below, {"recipes": {"tuned": whole}}])["tuned"] == whole
    assert recipes_of([below, {"recipes": ["tuned"]}]) == ["tuned"]


def test_damaged_configuration_is_valid_or_refused():
    accepted = 0
    for mutant in configurations.damaged(shipped("demo.yaml"), MUTANTS, 0, STRANGE):
        try:
            config.check(mutant)
            accepted += 1
        except UserError as error:
            said = str(error)
            assert said.startswith(("invalid configuration:", "there is no"))
            assert max(map(len, said.splitlines())) < 1100
    assert 0 < accepted < MUTANTS / 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", r"line 2: the key c is there twice"),
        ("a: &a [1, 2]\nb: [*a, *a]\n", r"line 2: an alias: write its value"),
        ("a: " + "[" * 500, r"invalid configuration file"),
        ("a: 0x" + "f" * 5000, r"invalid configuration file \(Exceeds the limit"),
        ("a: 1" + ":1" * 40_000, r"invalid configuration file \(Exceeds the limit"),
        ("- a\n", r"has no keys"),
        ("a: 1\nb: [1\nc: 2\n", r"line 3: expected ',' or ']'"),
        ("a:\n\tb: 1\n", r"line 2: found character '\\t'"),
        (b"a: 1\nb: M\xfcller\n", r"cannot be read as UTF-8 text \(line 2, byte 9: invalid start"),
        ("x" * 200_000, r"is no file of at most 100,000 bytes"),
        ("a: 2026-01-01\n", r"Object of type date is not JSON serializable"),
        ("a: !mine 1\n", r"line 1: could not determine a constructor for the tag '!mine'"),
    ],
)
def test_invalid_file_is_refused_in_one_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=rf"mine\.yaml.*{sentence}"):
        read_config(tmp_path / "mine.yaml")
