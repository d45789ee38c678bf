"""The tables of Part B of a made-up study with every kind of variant.

Three seeds of a network that is right in 62.0, 63.0 and 64.0 % of 10,000 images; what each variant
costs is in VARIANTS, so that a reader can work out every mean.
"""

from typing import Any

import pandas as pd

from scaling.config.scheme import Scheme
from scaling.tables import schema
from scaling.tables.experiments import quantization

FLOAT32 = [62.0, 63.0, 64.0]
GPTQ = {"weight_range": "mse", "activation_range": "mse", "rounding": "gptq"}

# (differences to float32 by seed, standard error of each, agreement, packed bytes, options)
VARIANTS: dict[str, tuple[list[float], float, float, int, dict[str, Any]]] = {
    "weights": ([0.1, -0.1, -0.03], 0.09, 98.9, 62_734, {"activation_bits": None}),
    "weights+activations": ([-0.1, -0.3, -0.2], 0.15, 96.6, 62_738, {"bias": "float"}),
    "weights+activations+bias": ([-0.4, -0.6, -0.5], 0.15, 96.5, 62_738, {}),
    "float-logits": ([-0.1, 0.0, -0.2], 0.12, 98.2, 62_738, {"logits": "float"}),
    "mistake-255_for_127": ([-0.4], 0.15, 95.0, 62_738, {"mistake": "255_for_127"}),
    "mistake-no_product": ([-52.0], 0.6, 10.0, 62_738, {"mistake": "no_product"}),
    "w4a8-max_abs": ([-3.0, -3.5, -2.5], 0.3, 80.0, 32_000, {"weight_bits": 4}),
    "w4a8-gptq": ([0.1, -0.3, -0.1], 0.2, 94.0, 32_400, {"weight_bits": 4, **GPTQ}),
    "w2a8-gptq": ([-9.0, -8.0, -10.0], 0.4, 60.0, 17_000, {"weight_bits": 2, **GPTQ}),
}
REVEALED = {
    "mistake-255_for_127": "SQNR; clipped share",
    "mistake-no_product": "accuracy; SQNR",
}
# (stage, reference, seeds, difference, standard error)
PAIRED = [
    ("weights+activations", "weights", 3, -0.19, 0.12),
    ("weights+activations+bias", "weights+activations", 3, -0.3, 0.1),
    ("mistake-255_for_127", "weights+activations+bias", 1, 0.0, 0.08),
    ("mistake-no_product", "weights+activations+bias", 1, -51.6, 0.6),
]
MEAN_ERRORS = {"weights": 0.06}
"""Where the table holds the error of the mean image by image; elsewhere it holds each seed's."""
LAYERS = ["images", "conv1", "fc3"]


def variants() -> pd.DataFrame:
    """quantization.csv."""
    rows: list[dict[str, Any]] = [
        {"seed": seed, "stage": "float32", "accuracy_percent": accuracy, "difference_points": 0.0}
        | {"agreement_percent": 100.0, "test_images": 10_000, "compression": 1.0}
        for seed, accuracy in enumerate(FLOAT32)
    ]
    for name, (differences, error, agreement, size, options) in VARIANTS.items():
        scheme = Scheme.of(options)
        integers = scheme.activation_bits is not None
        for seed, difference in enumerate(differences):
            rows.append(
                {"seed": seed, "stage": name, **scheme.model_dump(), "mistake": scheme.mistake}
                | {"accuracy_percent": FLOAT32[seed] + difference, "difference_points": difference}
                | {"standard_error_points": error, "agreement_percent": agreement}
                | {"test_images": 10_000, "packed_bytes": size, "float32_bytes": 248_024}
                | {"compression": 248_024 / size, "weight_sqnr_db": 37.0}
                | {"calibration_images": 40_000 if integers else 0}
                | {"sqnr_after_relu_db": 32.0 if integers else None}
                | {"propagated_sqnr_db": 28.0, "revealed_by": REVEALED.get(name)}
                | {"clipped_share_calibration": 0.0 if integers else None}
                | {"clipped_share_test": 1e-7 if integers else None}
                | {"logits_compared": 100_000 if integers else None}
                | {"logits_differing": 0 if integers else None}
                | {"mean_seeds": len(differences) if name in MEAN_ERRORS else None}
                | {"mean_standard_error_points": MEAN_ERRORS.get(name)}
            )
    return pd.DataFrame(rows, columns=schema.columns("quantization"))


def paired() -> pd.DataFrame:
    """quantization_paired.csv."""
    rows = [(stage, other, seeds, 10_000, *found) for stage, other, seeds, *found in PAIRED]
    return pd.DataFrame(rows, columns=schema.columns("quantization_paired"))


def layers() -> pd.DataFrame:
    """quantization_layers.csv: the images, a layer with ReLU and the last one."""
    rows = []
    for name, (differences, *_, options) in VARIANTS.items():
        scheme = Scheme.of(options)
        for seed in range(len(differences)):
            rows += [_layer(seed, name, layer, scheme) for layer in LAYERS]
    return pd.DataFrame(rows, columns=schema.columns("quantization_layers"))


def _layer(seed: int, stage: str, layer: str, scheme: Scheme) -> dict[str, Any]:
    noise = 9.2 if scheme.mistake == "255_for_127" else 0.0
    row: dict[str, Any] = {"seed": seed, "stage": stage, "layer": layer}
    if layer != "images":
        reach = {"conv1": 0.8, "fc3": 0.4}[layer] + seed / 10
        row |= {"weight_bits": scheme.weight_bits, "weight_scale": 127 / reach}
        row |= {"weight_minimum": -reach, "weight_maximum": reach / 2}
        row |= {"weight_clipped_share": 0.0, "weight_sqnr_db": 40.0 - seed}
        row |= {"packed_bytes": 500, "float32_bytes": 2000, "propagated_sqnr_db": 30.0}
    if scheme.activation_bits is None:
        return row
    row |= {"output_scale": 0.001, "output_minimum": 0.0, "output_maximum": 20.0 + seed}
    row |= {"clipped_share_calibration": 0.0, "clipped_share_test": 2e-5, "top_step": 127.0}
    row |= {"sqnr_after_relu_db": 33.0 - noise}
    if layer != "images":
        row |= {"input_scale": 60.0, "accumulator_scale": 6000.0, "bias_error_steps": 0.5}
        bound = 1_000_000 if layer == "conv1" else 20_000_000
        row |= {"products_bound": bound, "accumulator_bound": bound + 1000}
        row |= {"float32_exact": bound <= 2**24}
    return row


def peers() -> pd.DataFrame:
    """quantization_peers.csv: one peer in one seed, faster at batch 256 and not at 1."""
    ours = {"seed": 0, "engine": "this study", "version": "2.15.0", "status": "measured"}
    theirs = ours | {"engine": "onnxruntime", "version": "1.25.0", "batch_1_seconds": 1e-4}
    theirs |= {"batch_256_seconds": 5e-3}
    names = [f"batch_{batch}_ratio{end}" for batch in (1, 256) for end in ("", "_min", "_max")]
    same = dict.fromkeys(names, 1.0)
    ratios = dict(zip(names, [1.02, 0.95, 1.1, 0.6, 0.55, 0.7], strict=True))
    figures = {"accuracy_percent": 62.0, "difference_points": 0.0, "standard_error_points": 0.0}
    figures |= {"agreement_percent": 100.0, "agreement_ours_percent": 96.5, "times_smaller": 1.0}
    figures |= {"file_bytes": 248_024}
    int8 = {"accuracy_percent": 61.9, "difference_points": -0.1, "standard_error_points": 0.15}
    int8 |= {"agreement_percent": 97.0, "times_smaller": 3.5, "file_bytes": 70_000}
    rows = [
        {**ours, **figures, "precision": "float32"},
        {**ours, **figures, **int8, "precision": "int8"},
        {**theirs, **figures, **same, "precision": "float32"},
        {**theirs, **figures, **int8, **ratios, "precision": "int8"},
        {"seed": 0, "engine": "torchao", "status": "not installed", "note": "torchao missing"},
    ]
    return pd.DataFrame(rows, columns=schema.columns("quantization_peers"))


def resnet() -> pd.DataFrame:
    """quantization_resnet.csv: float32 and the last stage, one seed."""
    row = {"seed": 0, "stage": "float32", "accuracy_percent": 90.0, "difference_points": 0.0}
    row |= {"standard_error_points": 0.0, "agreement_percent": 100.0, "float32_bytes": 400}
    last = row | {"stage": "weights+activations+bias", "weight_scales": "channel"}
    last |= {"accuracy_percent": 89.8, "difference_points": -0.2, "standard_error_points": 0.05}
    last |= {"agreement_percent": 98.0, "packed_bytes": 100, "logits": 100_000}
    last |= {"differing_logits": 0, "accumulator_bound": 5_000_000}
    return pd.DataFrame([row, last], columns=schema.columns("quantization_resnet"))


def exports() -> pd.DataFrame:
    """quantization_export.csv: the tutorial CNN, int8 twice as fast as float32 where it is one."""
    about = {"seed": 0, "model": "tutorial-cnn", "all_threads": 2, "instructions": "avx2 avx_vnni"}
    about |= {"cpu": "a CPU", "onnx": "1.23", "onnxruntime": "1.32", "test_images": 10_000}
    rows = []
    for network, size, ratio in (("float32", 248_933, 1.0), ("int8", 67_332, 0.5)):
        row = about | {"network": network, "file_bytes": size, "times_smaller": 248_933 / size}
        row |= {"accuracy_percent": 62.0, "differing_classes": 0, "batch_1_one_core_ratio": ratio}
        rows.append(row | {"batch_1_one_core_seconds": 1e-4 * ratio})
    rows[1] |= {"logits": 100_000, "differing_logits": 7, "largest_steps": 1}
    return pd.DataFrame(rows, columns=schema.columns("quantization_export"))


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
    record = {"seed": 3, "layers": [{"layer": "fc", **layer}], "histograms": entries}
    return quantization.histograms([{**record, "seed": 4}, record, {"seed": 0, "layers": []}])


def make() -> dict[str, pd.DataFrame]:
    """All of them, by the names of their files."""
    return {
        "quantization": variants(),
        "quantization_layers": layers(),
        "quantization_histograms": pd.concat([histograms(), histograms().assign(layer="conv2")]),
        "quantization_paired": paired(),
        "quantization_peers": peers(),
        "quantization_resnet": resnet(),
        "quantization_export": exports(),
    }
