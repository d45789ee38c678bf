"""ONNX Runtime's static quantization as a peer. Its packages are imported when it is built."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from scaling.quantization.peer import Batches, Peer, Run

if TYPE_CHECKING:
    import onnx

OPTIONS = (
    "QDQ format, weights int8 symmetric per tensor, activations int8 with zero point per tensor, "
    "min-max calibration"
)


class _Reader:
    """The calibration images as ONNX Runtime wants them: one batch a call, then None."""

    def __init__(self, batches: Iterator[Tensor]) -> None:
        self.batches = batches

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self.batches, None)
        return None if batch is None else {"images": batch.numpy()}


def build(network: nn.Sequential, batches: Batches, threads: int) -> Peer:
    """The float `network` exported to ONNX, and that model quantized by ONNX Runtime."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported, prepared, quantized = (
            folder / f"{step}.onnx" for step in ("exported", "prepared", "quantized")
        )
        example = next(batches())[:2]
        program = torch.onnx.export(
            network,
            (example,),
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
        )
        assert program is not None
        program.save(exported)
        quant_pre_process(exported, prepared)
        quantize_static(
            prepared,
            quantized,
            _Reader(batches()),
            quant_format=QuantFormat.QDQ,
            per_channel=False,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        models = {
            precision: _plain(onnx.load(path)).SerializeToString()
            for precision, path in {"float32": exported, "int8": quantized}.items()
        }
    return Peer(
        options=OPTIONS,
        runs={precision: _run(model, threads) for precision, model in models.items()},
        file_bytes={precision: len(model) for precision, model in models.items()},
    )


def _plain(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """The model without the exporter's notes (source lines, shapes): they are no part of it."""
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer):
        del part.metadata_props[:]
    for part in (model.graph, *model.graph.node, *model.graph.initializer):
        part.doc_string = ""
    del model.graph.value_info[:]
    return model


def _run(model: bytes, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
