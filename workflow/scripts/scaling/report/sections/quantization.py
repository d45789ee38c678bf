"""Part B of the report: the lab's questions on int8 in order, the ledger, mistakes, fewer bits."""

from typing import Any

from scaling.config.scheme import STAGES
from scaling.report.sections import (
    quantization_integers,
    quantization_layers,
    quantization_mistakes,
    quantization_peers,
    quantization_resnet,
    quantization_stages,
    quantization_variants,
)
from scaling.report.table import SectionPart
from scaling.tables.schema import StudyTables


def part_b(tables: StudyTables) -> dict[str, Any]:
    """Make the part of each heading, and say how many test images there were, if any."""
    variants, layers = tables.quantization, tables.quantization_layers
    paired = tables.quantization_paired
    float32, weights, activations, biases = STAGES
    images = sorted(int(count) for count in variants["test_images"].dropna().unique())
    parts: dict[str, SectionPart] = {
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
