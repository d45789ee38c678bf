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
from collections import Counter, OrderedDict
from collections.abc import Iterator
from itertools import product
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
from scaling.quantization.calibration import Calibration, Points, calibrate, layers
from scaling.quantization.commands import Evaluation
from scaling.quantization.integers import Levels, Requantization, RoundedLayer, symmetric_scale
from scaling.quantization.network import (
    Builder,
    QuantizedLayer,
    exactness,
    quantized_layers,
)

BRANCH = Levels(-(2**15), 2**15 - 1)
"""What the two branches of a block are brought to before they are added."""
POSITIONS = 4 * 4
"""Of the last stage for 32×32 images, over which the mean is taken."""
SCHEMES: dict[str, dict[str, Any]] = dict(
    zip(STAGES[1:], ({"activation_bits": None}, {"bias": "float"}, {}), strict=True)
)


class Block(nn.Module):
    """A basic block whose batch norms are folded into its convolutions."""

    def __init__(self, block: BasicBlock) -> None:
        super().__init__()
        self.conv1 = fuse_conv_bn_eval(block.conv1, block.bn1)
        self.relu = nn.ReLU()
        self.conv2 = fuse_conv_bn_eval(block.conv2, block.bn2)
        self.shortcut = _folded(block.shortcut) if len(block.shortcut) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return (self.conv2(self.relu(self.conv1(x))) + self.shortcut(x)).relu()


def _folded(pair: nn.Sequential) -> nn.Module:
    convolution, norm, *_ = pair
    assert isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
    return fuse_conv_bn_eval(convolution, norm)


@torch.no_grad()
def fold(network: ResNet18) -> nn.Sequential:
    """Copy `network` with each batch norm folded into its convolution: the same in evaluation."""
    network = copy.deepcopy(network).eval()
    blocks = [one for stage in network.stages for one in stage.children()]
    parts = {
        "stem": _folded(network.stem),
        "relu": nn.ReLU(),
        "blocks": nn.Sequential(*(Block(one) for one in blocks if isinstance(one, BasicBlock))),
    }
    parts |= zip(("pool", "flatten", "fc"), network.head.children(), strict=True)
    return nn.Sequential(OrderedDict(parts)).eval()


def observer_points(folded: nn.Sequential) -> Points:
    """Map what is calibrated of a folded network, behind each ReLU, to the module that gives it."""
    points = {"stem": "relu", "pool": "pool", "fc": "fc"}
    for index, _ in folded.get_submodule("blocks").named_children():
        name = f"blocks.{index}"
        points |= {name: name, f"{name}.conv1": f"{name}.relu"}
        points |= {part: part for part in (f"{name}.conv2", f"{name}.shortcut")}
    return points


class QuantizedBlock(nn.Module):
    """A block: `conv2` and the shortcut give wider integers of one scale, `total` requantizes."""

    def __init__(
        self,
        conv1: QuantizedLayer,
        conv2: QuantizedLayer,
        shortcut: QuantizedLayer | Requantization,
        total: Requantization,
    ) -> None:
        super().__init__()
        self.conv1, self.conv2, self.shortcut, self.total = conv1, conv2, shortcut, total

    def forward(self, values: Tensor) -> Tensor:
        branch = self.conv2(self.conv1(values).clamp(min=0))
        if not branch.is_floating_point():
            branch = branch.int()
        return self.total(branch + self.shortcut(values)).clamp(min=0)


class QuantizedMean(nn.Module):
    """The mean over all positions of a channel."""

    def __init__(self, mean: Requantization) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, values: Tensor) -> Tensor:
        positions = values.flatten(2)
        assert positions.shape[2] == POSITIONS
        return self.mean(positions.sum(dim=2))


def quantize(folded: nn.Sequential, scheme: Scheme, calibration: Calibration) -> nn.Sequential:
    """Copy a folded network so that it computes on integers as `scheme` says.

    Without `scheme.activation_bits` activations stay floats, and weights are rounded to integers
    and divided by their scale again. `calibration` has the ranges at `observer_points`. Raises
    UserError when a tensor has no scale (all zero), and when an accumulator could leave int32.
    """
    if scheme.activation_bits is not None:
        return _integers(folded, Builder(scheme, calibration))
    copied = copy.deepcopy(folded)
    for name, layer in layers(copied).items():
        RoundedLayer.of(name, layer, scheme).assign_to(layer)
    return copied


def _integers(folded: nn.Sequential, builder: Builder) -> nn.Sequential:
    """Quantize all layers in the order of the computation, with the scale that each receives."""
    parts, levels, device = layers(folded), builder.levels, next(folded.parameters()).device

    def factor(factor: float, levels: Levels, of: str) -> Requantization:
        factors = torch.tensor([factor], dtype=torch.float64, device=device)
        return Requantization.nearest(factors, levels, of)

    def block(name: str, received: float) -> QuantizedBlock:
        ends = (builder.calibration[f"{name}.{each}"] for each in ("conv2", "shortcut"))
        amax = max(seen.max_abs for seen in ends)
        common = symmetric_scale(amax, f"the branches of {name}", BRANCH.high)
        conv1, conv2, shortcut = (f"{name}.{part}" for part in ("conv1", "conv2", "shortcut"))
        inner = builder.scale(conv1, levels)
        return QuantizedBlock(
            builder.layer(conv1, parts[conv1], received, levels),
            builder.layer(conv2, parts[conv2], inner, BRANCH, common),
            builder.layer(shortcut, parts[shortcut], received, BRANCH, common)
            if shortcut in parts
            else factor(common / received, BRANCH, shortcut),
            factor(builder.scale(name, levels) / common, levels, name),
        )

    entrance = builder.images()
    stem = builder.layer("stem", parts["stem"], entrance.scale, levels)
    scale, blocks = builder.scale("stem", levels), list[QuantizedBlock]()
    for index, _ in folded.get_submodule("blocks").named_children():
        blocks.append(block(f"blocks.{index}", scale))
        scale = builder.scale(f"blocks.{index}", levels)
    pooled = builder.scale("pool", levels)
    mean = QuantizedMean(factor(pooled / (scale * POSITIONS), levels, "pool"))
    fc = builder.layer("fc", parts["fc"], pooled, builder.logits)
    modules = {"quantize": entrance, "stem": stem, "relu": nn.ReLU()}
    modules |= {"blocks": nn.Sequential(*blocks), "pool": mean, "fc": fc}
    return nn.Sequential(OrderedDict(modules)).eval()


class StagesEvaluation(Evaluation):
    """Take a ResNet-18 through all stages of int8 quantization."""

    model_width: int
    """Channels of its first stage."""

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        network = ResNet18(self.model_width, len(DATASET.read(self.manifest)["classes"]))
        name = f"a ResNet-18 of width {self.model_width}"
        load_into(network, self.weights, name, f"quantize_train.py --model {self.model}")
        about = {"model_width": self.model_width, "calibration_images": len(chosen)}
        stages = measure_stages(network.eval().to(device), chosen, test)
        yield self.output, {**about, "stages": stages}


@torch.no_grad()
def measure_stages(network: ResNet18, chosen: Images, test: Images) -> list[dict[str, Any]]:
    """Measure each stage on the `test` images, calibrated on the `chosen` ones.

    float32 is `network` as it was trained, with its batch norms. Integers are computed on a GPU
    that multiplies int8 (Turing or newer), else on the CPU.
    """
    on_gpu = test.device.type == "cuda" and older_gpu(TURING) is None
    folded = fold(network)
    calibration = calibrate(folded, chosen.batches(), observer_points(folded))
    reference = predict(network, test)
    sizes = [each.weight.numel() + len(each.weight) for each in layers(folded).values()]
    size = {"float32_bytes": 4 * sum(sizes)}
    rows: list[Any] = [{"stage": STAGES[0], **size, **paired(test.labels, reference, reference)}]
    for kind, (stage, options) in product(("tensor", "channel"), SCHEMES.items()):
        made = quantize(folded, Scheme.of({"weight_scales": kind, **options}), calibration)
        row = {"stage": stage, "weight_scales": kind, **size}
        row |= paired(test.labels, reference, predict(made, test))
        if found := quantized_layers(made).values():
            row["packed_bytes"] = sum(each.rounded.packed_bytes(8) for each in found)
            row["accumulator_bound"] = max(each.accumulator_bound for each in found)
        if stage == STAGES[-1]:
            exact = Counter[str]()
            for batch in test.batches():
                exact.update(exactness(made, batch if on_gpu else batch.cpu(), made(batch)))
            row["exactness"] = dict(exact)
        rows.append(row)
    return rows
