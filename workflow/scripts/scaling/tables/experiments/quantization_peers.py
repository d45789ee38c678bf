"""Other quantizers beside ours as one table, from the records of all seeds."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import files
from scaling.core.errors import UserError
from scaling.quantization.compare import PairedAccuracy

OURS = "this study"
COLUMNS = [
    *("seed", "engine", "version", "precision", "status", "note", "options"),
    *PairedAccuracy.__annotations__,
    "agreement_ours_percent",
    *("file_bytes", "times_smaller", "threads"),
    *("batch_1_seconds", "batch_1_ratio", "batch_1_ratio_min", "batch_1_ratio_max"),
    *("batch_256_seconds", "batch_256_ratio", "batch_256_ratio_min", "batch_256_ratio_max"),
]
"""A row per seed, engine and precision, or one without figures where a peer could not be measured.

The difference and agreement are to PyTorch's float32, `agreement_ours_percent` is with our int8.
`times_smaller` is the engine's own float32 file over this one.
Seconds are medians of a call's; a ratio is the time over that of the same engine's float32 in the
same round, as the median, smallest and largest of the rounds: below 1 is faster.
"""
WHOLE = ["gained", "lost", "test_images", "file_bytes"]


def read_document(path: Path) -> dict[str, Any]:
    """What `quantize_peers.py` wrote to `path`; anything else is a UserError that names it."""
    document = files.read_json(path)
    if not (isinstance(document, dict) and {"seed", "ours", "peers"} <= document.keys()):
        raise UserError(f"{path} was not written by quantize_peers.py; give a file that was")
    return document


def table(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `COLUMNS`, by seed, ours first; no rows for no documents."""
    rows = [
        {"seed": document["seed"], "threads": document["threads"], **row}
        for document in sorted(documents, key=lambda document: document["seed"])
        for row in _rows(document)
    ]
    # A row without figures would turn whole numbers into floats.
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(WHOLE, "Int64"))


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        {
            "engine": OURS,
            "version": document["environment"]["torch"],
            "precision": precision,
            "status": "measured",
            **_figures(network, document["ours"]["float32"]),
        }
        for precision, network in document["ours"].items()
    ]
    for peer in document["peers"]:
        about = {"engine": peer["peer"], "version": peer["versions"][peer["peer"]]}
        about |= {key: peer.get(key) for key in ("status", "note", "options")}
        networks = peer["networks"]
        rows += [
            {**about, "precision": precision, **_figures(network, networks["float32"])}
            for precision, network in networks.items()
        ] or [about]
    return rows


def _figures(network: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The figures of `network`, whose engine's float32 is `own`."""
    figures = {key: value for key, value in network.items() if key != "seconds"}
    figures["times_smaller"] = own["file_bytes"] / network["file_bytes"]
    for batch, seconds in network.get("seconds", {}).items():
        ratios = np.divide(seconds, own["seconds"][batch])
        figures |= {
            f"batch_{batch}_seconds": float(np.median(seconds)),
            f"batch_{batch}_ratio": float(np.median(ratios)),
            f"batch_{batch}_ratio_min": float(ratios.min()),
            f"batch_{batch}_ratio_max": float(ratios.max()),
        }
    return figures
