"""Part B of the report: the lab's questions on int8 in order, the ledger, mistakes, fewer bits."""

from typing import Any

from scaling import (
    report_quantization_integers,
    report_quantization_layers,
    report_quantization_mistakes,
    report_quantization_peers,
    report_quantization_resnet,
    report_quantization_stages,
    report_quantization_variants,
)
from scaling.quantization_scheme import STAGES
from scaling.report_part import Part
from scaling.result_tables import StudyTables


def part_b(tables: StudyTables) -> dict[str, Any]:
    """A `Part` for each heading of the section, how many test images there were, and if any."""
    variants, layers = tables.quantization, tables.quantization_layers
    paired = tables.quantization_paired
    float32, weights, activations, biases = STAGES
    images = sorted(int(count) for count in variants["test_images"].dropna().unique())
    parts: dict[str, Part] = {
        "weights": report_quantization_stages.stage(variants, paired, weights, float32),
        "weight_layers": report_quantization_layers.weights(layers),
        "activation_layers": report_quantization_layers.activations(layers, variants),
        "activations": report_quantization_stages.stage(variants, paired, activations, weights),
        "biases": report_quantization_stages.stage(variants, paired, biases, activations),
        "ledger": report_quantization_integers.accumulators(layers, variants),
        "mistakes": report_quantization_mistakes.known_mistakes(variants, layers, paired),
        "fewer_bits": report_quantization_variants.fewer_bits(variants),
        "choices": report_quantization_variants.at_8_bits(variants),
        "peers": report_quantization_peers.peers(tables.experiment("quantization_peers")),
        "resnet": report_quantization_resnet.resnet(tables.experiment("quantization_resnet")),
    }
    return {
        "parts": parts,
        "images": " or ".join(f"{count:,}" for count in images),
        "quantized": len(variants) > 0,
    }
