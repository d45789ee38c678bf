"""The values of a layer of a made-up network, counted."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.tables.experiments import quantization

# Levels -5 to 3 at 2 levels per unit.
HISTOGRAM = {
    "bin_edges": [(level - 0.5) / 2 for level in range(-5, 5)],
    "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1],
}
INT8 = {"layer": "fc", "weight_bits": 8, "output_steps": [-128, 127]}


def histograms(**layer: Any) -> pd.DataFrame:
    """The table of a record of one layer without ReLU."""
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    record = {"seed": 3, "variant": STAGES[-1], "layers": [{**INT8, **layer}]}
    record |= {"histograms": entries}
    return quantization.histograms([{**record, "seed": 4}, record, {"seed": 0, "layers": []}])
