"""The configuration that asks for all of it."""

from pathlib import Path

import yaml

from scaling.config import config

ROOT = Path(__file__).parents[4]


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


def test_it_has_the_variants_that_were_written_one_by_one():
    asked = read("config/config.yaml")
    asked["quantization"] |= read("workflow/scripts/extras/bits/config.yaml")["quantization"]
    config.check(asked, reads_images=False)
    written = config.asked(asked)
    found = written["quantization"]["variants"]
    names = {variant["name"] for variant in found}
    before = read("studies/h200-large-batches/config.yaml")["quantization"]["variants"]
    assert found == [variant for variant in before if variant["name"] in names]
    assert len(found) == 3 + 3 + 2 * (6 + 6 + 4)
    assert config.asked(written) == written
