"""The configuration that asks for all of it."""

from pathlib import Path

import yaml

from scaling.config import config

ROOT = Path(__file__).parents[4]


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


def test_its_variants_are_those_of_the_stored_study():
    asked = read("config/config.yaml")
    asked["quantization"] |= read("workflow/scripts/extras/bits/config.yaml")["quantization"]
    config.check(asked, reads_images=False)
    found = config.asked(asked)["quantization"]["variants"]
    stored = read("studies/h200-large-batches/config.yaml")["quantization"]["variants"]
    assert len(found) == 3 + 3 + 2 * (6 + 6 + 4) and all(variant in stored for variant in found)
