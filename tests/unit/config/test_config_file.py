"""A configuration file with ambiguous or invalid YAML is refused in one sentence."""

import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from examples.configurations import changed
from scaling.config.stored import RESULTS, read_config, recipes_of
from scaling.core.errors import UserError
from scaling.launch import preflight


def test_recipe_with_an_engine_replaces_and_without_changes():
    tuned = {"engine": "resident", "compile": True, "muon": 0.1}
    below = {"recipes": {"tuned": tuned, "plain": {"engine": "eager"}}}
    changed = recipes_of([below, {}, {"recipes": {"tuned": {"compile": False}}}])
    assert changed == below["recipes"] | {"tuned": tuned | {"compile": False}}
    for whole in ({"engine": "resident"}, {"base": "plain"}, {"command": "train {gpus}"}):
        assert recipes_of([below, {"recipes": {"tuned": whole}}])["tuned"] == whole
    assert recipes_of([below, {"recipes": ["tuned"]}]) == ["tuned"]
    wrong = {"recipes": {"plain": 5}}  # Is refused later.
    assert recipes_of([wrong, {"recipes": {"plain": {"compile": True}}}]) == wrong["recipes"]


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
        (b"a: 1\nb: M\xfcller\n", r"cannot be read as UTF-8 text \(.* position 9: invalid start"),
        ("x" * 200_000, r"is no file of at most 100,000 bytes"),
        ("a: 2026-01-01\n", r"2026-01-01 is read as a date: put it in quotes"),
        ("a: !mine 1\n", r"line 1: could not determine a constructor for the tag '!mine'"),
    ],
)
def test_invalid_file_is_refused_in_one_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=rf"mine\.yaml.*{sentence}"):
        read_config(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("parts", "replayed", "used"),
    [
        (["scaling"], None, [1, 2]),
        (["scaling", "time_to_accuracy"], None, [1, 2, 4]),
        (["scaling", "proofs"], None, [1, 2, 8]),
        (["int8"], None, [1]),
        (["accuracy"], None, [1]),
        (["time_to_accuracy"], None, [4, 16]),  # Whatever the grid has.
        (["time_to_accuracy", "proofs"], None, [4, 8]),
        (["scaling"], RESULTS, [1, 2, 4, 8]),  # It may have a sweep of each.
    ],
)
def test_gpus_of_a_grid_are_those_that_a_job_uses(parts, replayed, used, monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})
    trained = ("time_to_accuracy.recipe", "tuned"), ("time_to_accuracy.gpus", [4, 16])
    limited = ("grid.gpus", [1, 2, 4, 8]), ("recipes.plain.gpus", [2, 1, 16])
    document = changed(("parts", parts), *trained, *limited)
    preflight.check(document, replayed)
    assert document["grid"]["gpus"] == used


SPARE = {"recipes": {"mine": {"command": "train {gpus} {batch_size}"}}, "parts": ["scaling"]}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (SPARE, r"recipes has mine, which no key names: give grid\.recipes"),
        (SPARE | {"grid": {"recipes": ["plain"]}}, None),
        ({"plugins": "my.py"}, r"plugins is 'my\.py': it should be a list, as \[my\.py\]"),
        ({"plugins": 5}, r"plugins is 5: it should be a list, as \[5\]"),
        ({"plugins": {"a": 1}}, r"plugins is {'a': 1}: it should be a list$"),
        ({"plugins": ["a\0b"]}, "ab does not exist from"),
    ],
)
def test_spare_command_and_plugins_without_files_are_refused(given, sentence, monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})
    settings = SimpleNamespace(config=given)
    workflow = SimpleNamespace(configfiles=[], config_settings=settings, basedir=Path.cwd())
    with pytest.raises(UserError, match=sentence) if sentence else nullcontext():
        preflight.accept(workflow, {}, Path.cwd(), "")
