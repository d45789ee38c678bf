"""The described keys, the table in config/README.md and the JSON Schema agree with each other."""

import json
from runpy import run_path

import pytest
import yaml
from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

from examples.configurations import ROOT, shipped
from scaling.config import config
from scaling.config.keys import Configuration

README = run_path(str(ROOT / "docs/config_keys.py"))
SCHEMA = ROOT / "config/schema.json"


def described():
    left_out = ("recipes", "recipes.*.command")
    return [key for key, _ in README["rows"]() if "[]" not in key and key not in left_out]


def keys(section, prefix=""):
    """The dotted names of all values, with `recipes.*` for any recipe, without its `base`."""
    found = {}
    for key, value in section.items():
        name = "recipes.*" if prefix == "recipes." else f"{prefix}{key}"
        within = keys(value, f"{name}.") if isinstance(value, dict) and value else [name]
        found |= dict.fromkeys(within)
    return [name for name in found if name != "recipes.*.base"]


def test_the_demo_has_exactly_the_keys_that_are_described():
    assert keys(shipped("demo.yaml")) == described()


def test_the_full_study_has_no_key_at_its_default():
    written = shipped("config.yaml")
    assert set(keys(written)) <= set(described()) <= set(keys(config.asked(written)))
    for section, given in written.items():
        kind = Configuration.model_fields[section].annotation
        for key, value in given.items() if hasattr(kind, "model_fields") else ():
            default = kind.model_fields[key].get_default(call_default_factory=True)
            assert value != default, f"{section}.{key}"


def test_the_readme_and_the_schema_have_what_the_keys_say():
    page = (ROOT / "config/README.md").read_text()
    assert README["updated"](page) == page
    assert json.loads(SCHEMA.read_text()) == README["schema"]()


def test_the_schema_takes_what_is_a_configuration_and_refuses_an_unknown_key():
    for path in [*(ROOT / "config").glob("*.yaml"), *(ROOT / "studies").glob("*/config.yaml")]:
        validate(yaml.safe_load(path.read_text()), SCHEMA, set_default=False)
    for wrong in ({"grid": {"gpu": [1]}}, {"recipes": {"a": {"loader_workers": -1}}}):
        with pytest.raises(WorkflowError, match=r"gpu|minimum of 0"):
            validate(wrong, SCHEMA, set_default=False)
