"""Takes a trained ResNet-18 through the stages of quantization, and measures what each costs."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import nn

from extras.bits.resnet import fold, observer_points, quantize
from scaling.config.scheme import STAGES, Scheme
from scaling.core.environment import TURING, older_gpu
from scaling.core.paired_accuracy import paired
from scaling.core.records.kind import DATASET
from scaling.data.batches import Images, predict
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization.calibration import calibrate, layers
from scaling.quantization.commands import Evaluation, attempted
from scaling.quantization.integers import INT8
from scaling.quantization.network import exactness, quantized_layers

SCHEMES: dict[str, dict[str, Any]] = dict(
    zip(STAGES[1:], ({"activation_bits": None}, {"bias": "float"}, {}), strict=True)
)


class StagesEvaluation(Evaluation):
    """Take a ResNet-18 through all stages of int8 quantization."""

    model_width: int
    """Channels of its first stage."""

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
        ranges = calibrate(folded, chosen.batches(), observer_points(folded))

        def made(**options: Any) -> nn.Module:
            return quantize(folded, Scheme(weight_scales="channel", **options), ranges, INT8)

        return {"float32": lambda: folded, "int8": made, "uint8": partial(made, unsigned=True)}


@torch.no_grad()
def measure_stages(network: ResNet18, chosen: Images, test: Images) -> dict[str, Any]:
    """Measure the `stages` on the `test` images, calibrated on the `chosen` ones.

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
    left_out = []
    for kind, (stage, options) in product(("tensor", "channel"), SCHEMES.items()):
        about = {"stage": stage, "weight_scales": kind}
        scheme = Scheme.of({"weight_scales": kind, **options})
        made = attempted(partial(quantize, folded, scheme, calibration))
        if isinstance(made, str):
            left_out.append(about | {"reason": made})
            continue
        row = about | size | paired(test.labels, reference, predict(made, test))
        if found := quantized_layers(made).values():
            row["packed_bytes"] = sum(each.rounded.packed_bytes(8) for each in found)
            row["accumulator_bound"] = max(each.accumulator_bound for each in found)
        if stage == STAGES[-1]:
            exact = Counter[str]()
            for batch in test.batches():
                exact.update(exactness(made, batch if on_gpu else batch.cpu(), made(batch)))
            row["exactness"] = dict(exact)
        rows.append(row)
    return {"stages": rows, **({"left_out": left_out} if left_out else {})}
