"""What a configuration asks of extras that are not here."""

from collections.abc import Iterator, Mapping
from typing import Any

from scaling.config.keys import Configuration
from scaling.core.plugins import has_extra


def missing(config: Configuration, recipes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say which keys, of the `recipes` used too, need an extra whose folder is not here."""
    fused = [name for name, options in recipes.items() if options.get("fused_norms")]
    if fused and not has_extra("kernels"):
        yield (
            f"recipes.{fused[0]}.fused_norms needs workflow/scripts/extras/kernels, which is not "
            "here: restore that folder, or set the key to false"
        )
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
