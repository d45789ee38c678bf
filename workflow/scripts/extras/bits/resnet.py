"""Takes a trained ResNet-18 to integers by the lab's stages, and measures what each costs.

In evaluation a batch norm is a factor and a shift for each channel, so it becomes part of the
convolution before it (Jacob et al. 2018, section 3.2). Layers are those of the tutorial CNN
(`network`). What is new is the addition of two branches. Each has a scale of its own, so both are
first requantized to one: to 16-bit integers at

    C = 32767 / max(|conv2|, |shortcut|),

the maximum calibrated over both branches. Then they are added, which 17 bits hold, and the sum is
requantized to int8 at the scale of what the block passes on after its ReLU. The mean over all
positions is a sum in int32, whose division is part of its requantization factor.
"""

import copy
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from scaling.config.scheme import STAGES, Scheme
from scaling.core.environment import TURING, older_gpu
from scaling.core.paired_accuracy import paired
from scaling.core.records.kind import DATASET
from scaling.data.batches import Images, predict
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization import network as int8
from scaling.quantization.commands import Evaluation
from scaling.quantization.integers import Requantization, packed_bytes, symmetric_scale

BRANCH_BITS = 16
"""Of what the two branches of a block are brought to before they are added."""
POSITIONS = 4 * 4
"""Of the last stage for 32×32 images, over which the mean is taken."""
SCHEMES: dict[str, dict[str, Any]] = dict(
    zip(STAGES[1:], ({"activation_bits": None}, {"bias": "float"}, {}), strict=True)
)


@torch.no_grad()
def fold(network: ResNet18) -> ResNet18:
    """Copy `network` with each batch norm folded into its convolution: the same in evaluation."""
    folded = copy.deepcopy(network).eval()
    for module in [*folded.modules()]:
        children: list[Any] = [*module.named_children()]
        for (before, convolution), (name, norm) in pairwise(children):
            if isinstance(norm, nn.BatchNorm2d):
                module.set_submodule(before, fuse_conv_bn_eval(convolution, norm))
                module.set_submodule(name, nn.Identity())
    return folded


def blocks(network: nn.Module) -> dict[str, BasicBlock]:
    """List the blocks of a ResNet-18, by name."""
    return {name: one for name, one in network.named_modules() if isinstance(one, BasicBlock)}


class PositionSum(nn.Module):
    """The sum over all positions of a channel."""

    def forward(self, values: Tensor) -> Tensor:
        return values.flatten(2).sum(dim=2)


def residual(network: nn.Module, quantizer: int8.Quantizer) -> None:
    """Replace all layers of a folded ResNet-18 by quantized ones, with the scale each receives."""
    parts, bits, seen = int8.layers(network), quantizer.bits, quantizer.calibration

    def put(name: str, received: float, bits: int | None, scale: float | None = None) -> None:
        made = int8.QuantizedLayer(quantizer, name, parts[name], received, bits, scale)
        network.set_submodule(name, made)

    passed = quantizer.scale("stem", bits)
    put("stem.0", quantizer.scale(int8.IMAGES, bits), bits, passed)
    for name, block in blocks(network).items():
        received, passed = passed, quantizer.scale(name, bits)
        conv1, conv2, shortcut = (f"{name}.{part}" for part in ("conv1", "conv2", "shortcut"))
        largest = max(abs(end) for branch in (conv2, shortcut) for end in seen[branch])
        common = symmetric_scale(largest, f"the branches of {name}", BRANCH_BITS)
        # What is below 0 stops at the ReLU.
        inner = symmetric_scale(seen[conv1][1], f"the outputs of {conv1}", bits)
        put(conv1, received, bits, inner)
        put(conv2, inner, BRANCH_BITS, common)
        if len(block.shortcut):
            put(f"{shortcut}.0", received, BRANCH_BITS, common)
        else:
            same = Requantization(common / received, BRANCH_BITS, shortcut)
            network.set_submodule(shortcut, same)
        # A block's last ReLU may be before its requantization as well as after it.
        total = Requantization(passed / common, bits, name)
        network.set_submodule(name, nn.Sequential(block, total))
    received, passed = passed, quantizer.scale("head.0", bits)
    mean = Requantization(passed / (received * POSITIONS), bits, "head.0")
    network.set_submodule("head.0", nn.Sequential(PositionSum(), mean))
    put("head.2", passed, quantizer.logits)


class StagesEvaluation(Evaluation):
    """Take a ResNet-18 through all stages of int8 quantization."""

    model_width: int
    """Channels of its first stage."""

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Measure each stage on the `test` images, calibrated on the `chosen` ones.

        float32 is the network as it was trained, with its batch norms. Integers are computed on a
        GPU that multiplies int8 (Turing or newer), else on the CPU.
        """
        network = ResNet18(self.model_width, len(DATASET.read(self.manifest)["classes"]))
        name = f"a ResNet-18 of width {self.model_width}"
        load_into(network, self.weights, name, f"quantize_train.py --model {self.model}")
        on_gpu = device.type == "cuda" and older_gpu(TURING) is None
        integers_on = device if on_gpu else torch.device("cpu")
        folded = fold(network.to(device))
        calibration = int8.calibrate(folded, chosen.batches())
        reference = predict(network.eval(), test)
        sizes = [each.weight.numel() + len(each.weight) for each in int8.layers(folded).values()]
        size = {"float32_bytes": 4 * sum(sizes)}
        rows = [{"stage": STAGES[0], **size, **paired(test.labels, reference, reference)}]
        for kind, (stage, options) in product(("tensor", "channel"), SCHEMES.items()):
            scheme = Scheme.of({"weight_scales": kind, **options})
            made = int8.quantize(folded, scheme, calibration, residual)
            row: dict[str, Any] = {"stage": stage, "weight_scales": kind, **size}
            row |= paired(test.labels, reference, predict(made, test))
            if found := int8.quantized_layers(made).values():
                packed = (packed_bytes(each.weight, each.scales, 8) for each in found)
                row["packed_bytes"] = sum(packed)
                row["accumulator_bound"] = max(each.accumulator_bound for each in found)
            if stage == STAGES[-1]:
                row["exactness"] = int8.exactness(made, test.batches(), integers_on)
            rows.append(row)
        about = {"model_width": self.model_width, "calibration_images": len(chosen)}
        yield self.output, {**about, "stages": rows}
