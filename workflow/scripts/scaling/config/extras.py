"""What a configuration asks of extras that are not here."""

from collections.abc import Iterator

from scaling.config.keys import Configuration
from scaling.core.plugins import has_extra


def missing(config: Configuration) -> Iterator[str]:
    """Say which keys need an extra whose folder is not here."""
    section = config.quantization
    asked = [name for name in ("peers", "resnet18") if getattr(section, name)]
    asked += [
        f"variants[{place}]"
        for place, variant in enumerate(section.variants)
        if variant.needs_moments
    ]
    if section.seeds and asked and not has_extra("bits"):
        yield (
            f"quantization.{asked[0]} needs workflow/scripts/extras/bits, which is not here: "
            "restore that folder, or leave the key as in config/config.yaml"
        )
