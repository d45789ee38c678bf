"""Takes a trained ResNet-18 through the stages of quantization, and measures what each costs."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from extras.bits.resnet import fold, observer_points, quantize
from scaling.config.scheme import STAGES, Scheme
from scaling.core.environment import TURING, older_gpu
from scaling.core.paired_accuracy import paired
from scaling.core.records.dataset import DATASET
from scaling.core.records.quantization import STAGED
from scaling.data.batches import Images
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization.calibration import Range, calibrate, layers
from scaling.quantization.commands import Evaluation, attempted
from scaling.quantization.integers import INT8, as_rows, multiply, patches
from scaling.quantization.network import (
    QuantizedLayer,
    exactness,
    in_integers,
    quantized_layers,
)
from scaling.quantization.training import predict

TIMED_IMAGES = 1024
TIMED_SECONDS = 0.2
"""Of calls for each figure of `gpu_speed`, the median of which is taken."""


class StagesEvaluation(Evaluation):
    """Take a ResNet-18 through all stages of int8 quantization."""

    model_width: int
    """Channels of its first stage."""
    evaluated: Path | None = None
    """For the export: what quantize_evaluate.py wrote for this network, whose ranges are taken
    then; else the calibration images are looked at."""

    def load(self) -> ResNet18:
        network = ResNet18(self.model_width, len(DATASET.read(self.manifest)["classes"]))
        name = f"a ResNet-18 of width {self.model_width}"
        load_into(network, self.weights, name, f"quantize_train.py --model {self.model}")
        return network.eval()

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        about = {"model_width": self.model_width, "calibration_images": len(chosen)}
        yield self.output, {**about, **measure_stages(self.load().to(device), chosen, test)}

    def networks(self, chosen: Images, test: Images) -> dict[str, Callable[[], nn.Module]]:
        """With scales for each channel, and int8 branches: runtimes have no sums of 16 bits."""
        folded = fold(self.load())
        seen = STAGED.read(self.evaluated)["ranges"] if self.evaluated else None
        if seen:
            ranges = {name: Range(*each) for name, each in seen.items()}
        else:
            ranges = calibrate(folded, chosen.batches(), observer_points(folded))

        def made(**options: Any) -> nn.Module:
            return quantize(folded, Scheme(weight_scales="channel", **options), ranges, INT8)

        return {"float32": lambda: folded, "int8": made, "uint8": partial(made, unsigned=True)}


SCHEMES: dict[str, dict[str, Any]] = dict(
    zip(STAGES[1:], ({"activation_bits": None}, {"bias": "float"}, {}), strict=True)
)


@torch.no_grad()
def measure_stages(network: ResNet18, chosen: Images, test: Images) -> dict[str, Any]:
    """Measure the `stages` on the `test` images, calibrated on the `chosen` ones; and `layers`.

    The `ranges` are those of the calibration, by layer: the smallest and the largest value.
    float32 is `network` as it was trained, with its batch norms. Integers are computed, and timed
    for `gpu_speed`, on a GPU that multiplies int8 (Turing or newer), else computed on the CPU.
    """
    on_gpu = test.device.type == "cuda" and older_gpu(TURING) is None
    folded = fold(network)
    calibration = calibrate(folded, chosen.batches(), observer_points(folded))
    reference = predict(network, test)
    sizes = [each.weight.numel() + len(each.weight) for each in layers(folded).values()]
    size = {"float32_bytes": 4 * sum(sizes)}
    rows: list[Any] = [{"stage": STAGES[0], **size, **paired(test.labels, reference, reference)}]
    bounds, left_out = [], []
    for kind, (stage, options) in product(("tensor", "channel"), SCHEMES.items()):
        scheme = Scheme.of({"weight_scales": kind, **options})
        made = attempted(partial(quantize, folded, scheme, calibration))
        if isinstance(made, str):
            left_out.append({"stage": stage, "weight_scales": kind, "reason": made})
            continue
        row = {"stage": stage, "weight_scales": kind, **size}
        found = [
            {"layer": one.name, **one.bounds(), "packed_bytes": one.rounded.packed_bytes(8)}
            for one in quantized_layers(made).values()
        ]
        if found:
            row["packed_bytes"] = sum(each["packed_bytes"] for each in found)
            row["accumulator_bound"] = max(each["accumulator_bound"] for each in found)
        if stage == STAGES[-1]:
            exact = Counter[str]()
            for batch in test.batches():
                exact.update(exactness(made, batch if on_gpu else batch.cpu(), made(batch)))
            row["exactness"] = dict(exact)
            bounds += [{"weight_scales": kind, **each} for each in found]
        rows.append(row | paired(test.labels, reference, predict(made, test)))
    images = test.normalised(slice(TIMED_IMAGES))
    speed = gpu_speed(folded, made, images) if on_gpu and isinstance(made, nn.Module) else []
    ranges = {name: [seen.minimum, seen.maximum] for name, seen in calibration.items()}
    refused = {"left_out": left_out} if left_out else {}
    return {"stages": rows, "layers": bounds, "ranges": ranges, "gpu_speed": speed, **refused}


def _median(call: Callable[..., Any], *operands: Any) -> float:
    timer = Timer("call(*operands)", globals={"call": call, "operands": operands})
    return float(timer.blocked_autorange(min_run_time=TIMED_SECONDS).median)


@torch.no_grad()
def gpu_speed(network: nn.Module, quantized: nn.Module, images: Tensor) -> list[dict[str, Any]]:
    """Time a `quantized` network in int8, and the float one it is made from in bfloat16.

    A row for each layer, as the product of [patches, inner] and [inner, outputs] on what it
    receives of `images`, and one called network; seconds a call. `images` are on a GPU. PyTorch has
    no int8 convolution there, so the whole network in int8 is that of `in_integers`: it unfolds,
    multiplies and requantizes by kernels of their own. The products alone are what int8 tensor
    cores would save where one kernel does it all.
    """
    received: dict[QuantizedLayer, Tensor] = {}
    layers = quantized_layers(quantized).values()
    hooks = [
        layer.register_forward_pre_hook(lambda module, inputs: received.update({module: inputs[0]}))
        for layer in layers
    ]
    in_integers(quantized, images)
    for hook in hooks:
        hook.remove()
    found = []
    for layer in layers:
        values, weight = received.pop(layer), layer.rounded.weight.to(images.device, torch.int8)
        if layer.convolution is not None:
            kernel = tuple(weight.shape[2:])
            values = patches(values, kernel, **layer.convolution).flatten(0, 2)
            weight = as_rows(weight)
        floats, columns = values.bfloat16(), weight.bfloat16().T
        row = {"layer": layer.name, "patches": len(values), "inner": values.shape[1]}
        row |= {"outputs": len(weight), "int8_seconds": _median(multiply, values, weight)}
        found.append(row | {"bfloat16_seconds": _median(torch.matmul, floats, columns)})
    half = copy.deepcopy(network).bfloat16().to(memory_format=torch.channels_last)
    moved = images.to(torch.bfloat16, memory_format=torch.channels_last)
    seconds = {"int8_seconds": _median(in_integers, quantized, images)}
    seconds["bfloat16_seconds"] = _median(half, moved)
    return [*found, {"layer": "network", **seconds}]
