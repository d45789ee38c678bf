"""Writes networks as ONNX files: float32 ones, and integer ones with QDQ nodes.

A pair of QuantizeLinear and DequantizeLinear stands wherever integers are passed on, and weights
and biases are integers behind a DequantizeLinear. ONNX's scale is the step, the reciprocal of ours.
It scales in float32, where ours is m / 2^n: a value next to a half may be rounded the other way.
"""

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import onnx
import torch
from torch import Tensor, nn

from extras.bits.resnet import POSITIONS, Block, QuantizedBlock, QuantizedMean
from scaling.quantization.integers import Levels, Requantization
from scaling.quantization.network import QuantizedImages, QuantizedLayer

OPSET, IR_VERSION = 17, 8  # of ONNX, from 2022


class Value(NamedTuple):
    """A tensor of the graph, by its name; of integers the `scale` and `levels` behind it."""

    name: str
    scale: float = 1.0
    levels: Levels | None = None


@dataclass
class Graph:
    """The nodes and constants of an ONNX graph, in the order of the computation."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, values: Tensor | float, kind: torch.dtype = torch.float32) -> str:
        array = torch.as_tensor(values).detach().cpu().to(kind).numpy()
        self.constants.append(onnx.numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output, whose name it returns."""
        name = output or f"{operator}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def integers(self, values: Tensor, kind: torch.dtype, scales: Tensor) -> str:
        """Add integer constants of `scales` [outputs] (one, where all are equal) as floats.

        With a zero for each scale: where there is none ONNX Runtime may take one, and refuse it.
        """
        steps = 1 / (scales[0] if len(set(scales.tolist())) == 1 else scales)
        constants = (values, kind), (steps, torch.float32), (torch.zeros_like(steps), kind)
        inputs = [self.constant(*each) for each in constants]
        return self.add("DequantizeLinear", *inputs, axis=0)

    def rounded(self, name: str, scale: float, levels: Levels | None) -> Value:
        """Add a pair that rounds to `levels` of this scale; none for floats."""
        if levels is None:
            return Value(name)
        name = self.add("Relu", name) if levels.low == 0 else name
        zero = self.constant(0, torch.uint8 if levels.low == 0 else torch.int8)
        step = self.constant(1 / scale)
        integers = self.add("QuantizeLinear", name, step, zero)
        return Value(self.add("DequantizeLinear", integers, step, zero), scale, levels)

    def layer(self, name: str, shape: dict[str, Any] | None, weight: str, bias: str) -> str:
        """Add a convolution of this `shape`, or a linear layer without one."""
        if not shape:
            return self.add("Gemm", name, weight, bias, transB=1)
        sizes = {"strides": shape["stride"], "pads": 2 * shape["padding"]}
        return self.add("Conv", name, weight, bias, **sizes)

    def module(  # noqa: C901  (one kind of module after the other)
        self, module: nn.Module | Requantization, value: Value
    ) -> Value:
        """Add a module that computes on `value`; TypeError for one without ONNX nodes."""
        name, scale, levels = value
        match module:
            case nn.Sequential() | nn.Identity():
                return reduce(
                    lambda before, part: self.module(part, before), module.children(), value
                )
            case QuantizedImages():
                return self.rounded(name, module.scale, module.levels)
            case Requantization():
                return self.rounded(name, scale * float(module.factor), module.levels)
            case QuantizedLayer(rounded=rounded):
                assert module.levels is not None and module.integer_bias
                weight = self.integers(rounded.weight, torch.int8, rounded.scales)
                biases = self.integers(module.bias, torch.int32, module.accumulator_scale)
                name = self.layer(name, module.convolution, weight, biases)
                return self.rounded(name, module.passed_scale, module.levels)
            case nn.Conv2d(bias=Tensor() as bias) | nn.Linear(bias=bias):
                shape = vars(module) if isinstance(module, nn.Conv2d) else None
                parameters = self.constant(module.weight), self.constant(bias)
                return Value(self.layer(name, shape, *parameters))
            case nn.ReLU():
                done = levels and levels.low == 0
                return value if done else self.rounded(self.add("Relu", name), scale, levels)
            case nn.MaxPool2d():
                side, stride = [module.kernel_size] * 2, [module.stride] * 2
                name = self.add("MaxPool", name, kernel_shape=side, strides=stride)
                return self.rounded(name, scale, levels)
            case nn.Flatten():
                return self.rounded(self.add("Flatten", name), scale, levels)
            case nn.AdaptiveAvgPool2d():
                return Value(self.add("GlobalAveragePool", name))
            case QuantizedMean():
                # Its factor is of the sum over all positions.
                mean = Value(self.add("GlobalAveragePool", name), scale * POSITIONS)
                return self.module(nn.Flatten(), self.module(module.mean, mean))
            case Block() | QuantizedBlock():
                branch = self.module(nn.Sequential(module.conv1, nn.ReLU(), module.conv2), value)
                other = self.module(module.shortcut, value)
                total = Value(self.add("Add", branch.name, other.name), branch.scale)
                if isinstance(module, QuantizedBlock):
                    total = self.module(module.total, total)
                return self.module(nn.ReLU(), total)
        raise TypeError(f"{module} has no ONNX nodes")


def model(network: nn.Module) -> tuple[bytes, float]:
    """Make the file of `network`: images, float32 [n, 3, 32, 32], to logits [n, classes].

    Of floats without batch norms, or of integers with int8 logits; returns the scale of these too.
    """
    graph = Graph()
    value = graph.module(network, Value("images"))
    graph.add("Identity", value.name, output="logits")
    described, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    ends = [described("images", kind, ["n", 3, 32, 32])], [described("logits", kind, ["n", None])]
    made = onnx.helper.make_graph(graph.nodes, "network", ends[0], ends[1], graph.constants)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    found = onnx.helper.make_model(made, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(found)
    return found.SerializeToString(), value.scale
