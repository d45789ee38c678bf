"""Part B of the report: the lab's questions on int8 in order, the ledger, mistakes, fewer bits."""

from typing import Any

from scaling.config.scheme import STAGES
from scaling.report.part import Part
from scaling.report.sections import (
    quantization_integers,
    quantization_layers,
    quantization_mistakes,
    quantization_peers,
    quantization_resnet,
    quantization_stages,
    quantization_variants,
)
from scaling.tables.schema import StudyTables


def part_b(tables: StudyTables) -> dict[str, Any]:
    """A `Part` for each heading of the section, how many test images there were, and if any."""
    variants, layers = tables.quantization, tables.quantization_layers
    paired = tables.quantization_paired
    float32, weights, activations, biases = STAGES
    images = sorted(int(count) for count in variants["test_images"].dropna().unique())
    parts: dict[str, Part] = {
        "weights": quantization_stages.stage(variants, paired, weights, float32),
        "weight_layers": quantization_layers.weights(layers),
        "activation_layers": quantization_layers.activations(layers, variants),
        "activations": quantization_stages.stage(variants, paired, activations, weights),
        "biases": quantization_stages.stage(variants, paired, biases, activations),
        "ledger": quantization_integers.accumulators(layers, variants),
        "mistakes": quantization_mistakes.known_mistakes(variants, layers, paired),
        "fewer_bits": quantization_variants.fewer_bits(variants),
        "choices": quantization_variants.at_8_bits(variants),
        "peers": quantization_peers.peers(tables.experiment("quantization_peers")),
        "resnet": quantization_resnet.resnet(tables.experiment("quantization_resnet")),
    }
    return {
        "parts": parts,
        "images": " or ".join(f"{count:,}" for count in images),
        "quantized": len(variants) > 0,
    }
