"""Which figures give a mistaken variant away beside the sound one made from the same weights.

Accuracy alone passes several of the published mistakes; the ledger of the layers passes none.
"""

from collections.abc import Callable
from typing import Any

from scaling.quantization.predicted_classes import decode, mean_difference

SQNR_DROP_DB = 3.0
"""A layer this much noisier than the sound one's has at least twice its noise."""
STANDARD_ERRORS = 2.0
HALF = 0.5 + 1e-6
RELATIVE = 1e-5

Document = dict[str, Any]


def _accuracy(mistaken: Document, sound: Document) -> bool:
    """The accuracy is worse by more than two standard errors of the difference, image by image."""
    labels = decode(sound["classes"]["labels"])
    theirs, ours = (decode(document["classes"]["variant"]) for document in (sound, mistaken))
    return mean_difference(labels, [theirs], [ours]).errors < -STANDARD_ERRORS


def _sqnr(*columns: str) -> Callable[[Document, Document], bool]:
    def dropped(mistaken: Document, sound: Document) -> bool:
        return any(
            wrong[column] < right[column] - SQNR_DROP_DB
            for wrong, right in zip(mistaken["layers"], sound["layers"], strict=True)
            for column in columns
            if wrong[column] is not None and right[column] is not None
        )

    return dropped


def _clipped(mistaken: Document, sound: Document) -> bool:
    """Training images are clipped somewhere, though all steps were meant to hold them."""
    pairs = zip(
        [mistaken["input"], *mistaken["layers"]], [sound["input"], *sound["layers"]], strict=True
    )
    column = "clipped_share_calibration"
    return any(wrong[column] > right[column] for wrong, right in pairs if wrong[column] is not None)


def _top_step(mistaken: Document, sound: Document) -> bool:
    """S · o · max misses the last step by more than rounding can."""
    return any(
        abs(wrong["top_step"] / right["top_step"] - 1) > RELATIVE
        for wrong, right in zip(mistaken["layers"], sound["layers"], strict=True)
        if wrong["top_step"] is not None
    )


def _bias(mistaken: Document, sound: Document) -> bool:
    """A quantized bias is further than half a step from b · S."""
    return any(row["bias_error_steps"] > HALF for row in mistaken["layers"])


def _calibration_images(mistaken: Document, sound: Document) -> bool:
    """Another number of images has calibrated than the study asked for."""
    return bool(mistaken["calibration_images"] != sound["calibration_images"])


def _calibration_checksum(mistaken: Document, sound: Document) -> bool:
    """Other images have calibrated than those chosen from the training set."""
    return bool(mistaken["calibration_checksum"] != mistaken["training_checksum"])


DIAGNOSTICS: dict[str, Callable[[Document, Document], bool]] = {
    "accuracy": _accuracy,
    "SQNR": _sqnr("weight_sqnr_db", "sqnr_after_relu_db"),
    "propagated SQNR": _sqnr("propagated_sqnr_db"),
    "clipped share": _clipped,
    "S·o·max": _top_step,
    "bias": _bias,
    "calibration images": _calibration_images,
    "calibration checksum": _calibration_checksum,
}
"""Each takes the record of the mistaken variant and of the sound one, both with integers."""


def revealed_by(mistaken: Document, sound: Document) -> list[str]:
    """The names of the diagnostics that tell the `mistaken` record from the `sound` one."""
    return [name for name, tells in DIAGNOSTICS.items() if tells(mistaken, sound)]
