"""Tables of Part B of a made-up study: what each variant costs, and the values of a layer.

Three seeds of a network that is right in 62.0, 63.0 and 64.0 % of 10,000 images; what each variant
costs is in VARIANTS, so that a reader can work out every mean.
"""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES, Scheme
from scaling.tables import schema
from scaling.tables.experiments import quantization

FLOAT32 = [62.0, 63.0, 64.0]
GPTQ = {"rounding": "gptq"}

# (differences to float32 by seed, standard error of each, packed bytes, options)
VARIANTS: dict[str, tuple[list[float], float, int, dict[str, Any]]] = {
    "weights": ([0.1, -0.1, -0.03], 0.09, 62_734, {"activation_bits": None}),
    "weights+activations": ([-0.1, -0.3, -0.2], 0.15, 62_738, {"bias": "float"}),
    "weights+activations+bias": ([-0.4, -0.6, -0.5], 0.15, 62_738, {}),
    "float-logits": ([-0.1, 0.0, -0.2], 0.12, 62_738, {"logits": "float"}),
    "mistake-no_product": ([-52.0], 0.6, 62_738, {"mistake": "no_product"}),
    "w4a8-max_abs": ([-3.0, -3.5, -2.5], 0.3, 32_000, {"weight_bits": 4}),
    "w4a8-gptq": ([0.1, -0.3, -0.1], 0.2, 32_400, {"weight_bits": 4, **GPTQ}),
    "w2a8-gptq": ([-9.0, -8.0, -10.0], 0.4, 17_000, {"weight_bits": 2, **GPTQ}),
}


def variants() -> pd.DataFrame:
    """quantization.csv."""
    rows: list[dict[str, Any]] = [
        {"seed": seed, "stage": "float32", "accuracy_percent": accuracy, "difference_points": 0.0}
        for seed, accuracy in enumerate(FLOAT32)
    ]
    for name, (differences, error, size, options) in VARIANTS.items():
        scheme = Scheme.of(options)
        rows += [
            {"seed": seed, "stage": name, **scheme.model_dump(), "mistake": scheme.mistake}
            | {"accuracy_percent": FLOAT32[seed] + difference, "difference_points": difference}
            | {"standard_error_points": error, "packed_bytes": size}
            for seed, difference in enumerate(differences)
        ]
    return schema.frame("quantization", rows)


# Levels -5 to 3 at 2 levels per unit.
HISTOGRAM = {
    "bin_edges": [(level - 0.5) / 2 for level in range(-5, 5)],
    "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1],
}


def histograms(**layer: Any) -> pd.DataFrame:
    """The table of a record of one layer without ReLU."""
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    record = {"seed": 3, "variant": STAGES[-1], "layers": [{"layer": "fc", **layer}]}
    record |= {"histograms": entries}
    return quantization.histograms([{**record, "seed": 4}, record, {"seed": 0, "layers": []}])
