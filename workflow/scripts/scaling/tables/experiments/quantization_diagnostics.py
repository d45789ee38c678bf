"""Diagnostics that distinguish a mistaken variant from the correct one of the same weights.

Accuracy alone misses several of the published mistakes; the layers' values miss none.
"""

from collections.abc import Callable

from scaling.core.paired_accuracy import decode, mean_difference
from scaling.core.records.quantization import Document
from scaling.tables.experiments.quantization_cost import STANDARD_ERRORS

SQNR_DROP_DB = 3.0
"""At this drop in SQNR a layer has at least twice the noise of the correct one."""
HALF_LEVEL = 0.5 + 1e-6
RELATIVE = 1e-5

Diagnostic = Callable[[Document, Document], bool]


def _accuracy(mistaken: Document, sound: Document) -> bool:
    """Return whether accuracy drops by more than two standard errors of the paired difference."""
    labels = decode(sound["classes"]["labels"])
    theirs, ours = (decode(document["classes"]["variant"]) for document in (sound, mistaken))
    return mean_difference(labels, [theirs], [ours]).errors < -STANDARD_ERRORS


def _any_layer(tells: Callable[[float, float], bool], *columns: str) -> Diagnostic:
    """Return a test whether `tells` holds for the mistaken and correct values of any layer.

    The images count as a layer for the columns that they have.
    """

    def diagnostic(mistaken: Document, sound: Document) -> bool:
        layers = ([one["input"], *one["layers"]] for one in (mistaken, sound))
        pairs = zip(*layers, strict=True)
        figures = [(wrong.get(key), right.get(key)) for wrong, right in pairs for key in columns]
        return any(tells(*pair) for pair in figures if None not in pair)

    return diagnostic


def _noisier(wrong: float, right: float) -> bool:
    return wrong < right - SQNR_DROP_DB


DIAGNOSTICS: dict[str, Diagnostic] = {
    "accuracy": _accuracy,
    "SQNR": _any_layer(_noisier, "weight_sqnr_db", "sqnr_after_relu_db"),
    "propagated SQNR": _any_layer(_noisier, "propagated_sqnr_db"),
    # Training images are clipped although the levels should cover them.
    "clipped share": _any_layer(lambda wrong, right: wrong > right, "clipped_share_calibration"),
    # The largest value is further from the last level than rounding allows.
    "S·o·max": _any_layer(lambda wrong, right: abs(wrong / right - 1) > RELATIVE, "top_step"),
    # A quantized bias is more than half a level from b · S.
    "bias": _any_layer(lambda wrong, _: wrong > HALF_LEVEL, "bias_error_steps"),
    "calibration images": lambda mistaken, sound: bool(
        mistaken["calibration_images"] != sound["calibration_images"]
    ),
    # Calibration used other images than those chosen from the training set.
    "calibration checksum": lambda mistaken, _: bool(
        mistaken["calibration_checksum"] != mistaken["training_checksum"]
    ),
}
"""Tests of (mistaken record, correct record), both with integers."""


def revealed_by(mistaken: Document, sound: Document) -> list[str]:
    """Return the diagnostics that distinguish the `mistaken` record from the `sound` one."""
    return [name for name, tells in DIAGNOSTICS.items() if tells(mistaken, sound)]
