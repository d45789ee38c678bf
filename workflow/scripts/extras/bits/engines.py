"""Builds networks by ONNX Runtime's static quantization and by torchao's PT2E; times and compares.

Their packages are imported when a network is built.
"""

import io
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from scaling.core.paired_accuracy import Classes, paired
from scaling.data.batches import Images

Run = Callable[[Tensor], Tensor]
"""Normalised images, float32 [n, 3, 32, 32] on the CPU, to logits, float32 [n, classes]."""
Batches = Callable[[], Iterator[Tensor]]
"""The calibration images, from the first each time it is called."""

Networks = dict[str, tuple[Run, int]]
"""The runs of an engine's float32 and int8 networks, and the bytes of their files."""
LATENCY_BATCHES = (1, 256)
ROUNDS = 15
ROUND_SECONDS = 0.1
"""Each round times every precision once, by calls for about this long; ratios are by round."""


def onnxruntime(network: nn.Sequential, batches: Batches, threads: int) -> Networks:
    """Write the float `network` as ONNX, and quantize that model by ONNX Runtime."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    from extras.bits import export

    images = ({"images": batch.numpy()} for batch in batches())
    reader = SimpleNamespace(get_next=lambda: next(images, None))
    with tempfile.TemporaryDirectory() as folder:
        exported, prepared, quantized = (
            Path(folder, f"{step}.onnx") for step in ("exported", "prepared", "quantized")
        )
        exported.write_bytes(export.model(network)[0])
        quant_pre_process(exported, prepared)
        quantize_static(
            prepared,
            quantized,
            reader,
            quant_format=QuantFormat.QDQ,
            per_channel=False,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        models = {"float32": exported.read_bytes(), "int8": quantized.read_bytes()}
    return {key: (onnxruntime_run(model, threads), len(model)) for key, model in models.items()}


def instructions() -> str:
    """The flags of an x86 processor that decide how fast int8 is, and by which kernels."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    return " ".join(sorted(re.findall(r"\b(?:avx2|avx512f|\w*vnni|amx\w*)\b", first)))


def onnxruntime_run(model: bytes, threads: int) -> Run:
    """Make the run of an ONNX model with inputs `images` on so many threads.

    On x86 without VNNI the default int8 kernels are wrong: they add products of u8 and s8 in 16
    bits, which clip. Those of the option x64quantprecision are right, and slower where VNNI is.
    Threads do not spin after a call, so that networks timed in turns leave one another the cores.
    """
    import onnxruntime as engine

    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    precise = "0" if "vnni" in instructions() else "1"
    options.add_session_config_entry("session.x64quantprecision", precise)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = engine.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


@torch.no_grad()
def torchao(network: nn.Sequential, batches: Batches, threads: int) -> Networks:
    """Quantize the float `network` by PT2E; both are compiled for the batch they are called with.

    Sets the number of threads of torch itself, whose Inductor is the engine.
    """
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    torch.set_num_threads(threads)
    example = next(batches())[:2].clone()
    quantizer = X86InductorQuantizer()
    quantizer.set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(_exported(network, example).module(), quantizer)
    for batch in batches():
        prepared(batch)
    networks = {"float32": network, "int8": _without_unread(convert_pt2e(prepared))}
    return {
        precision: (_compiled_run(found), _file_bytes(_exported(found, example)))
        for precision, found in networks.items()
    }


def _exported(network: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(
        network, (example,), dynamic_shapes=({0: torch.export.Dim("n", max=2**16)},)
    )


def _without_unread(network: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Delete the float weights that the graph no longer reads, so that no file holds them."""
    read = {str(node.target) for node in network.graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in network.named_parameters() if name not in read]:
        owner, _, attribute = name.rpartition(".")
        delattr(network.get_submodule(owner), attribute)
    return network


def _file_bytes(program: torch.export.ExportedProgram) -> int:
    program.example_inputs = None
    archive = io.BytesIO()
    torch.export.save(program, archive)
    return len(archive.getvalue())


def _compiled_run(network: nn.Module) -> Run:
    from torch._inductor import config as inductor

    compiled = torch.compile(network, dynamic=False)
    ready: set[int] = set()

    @torch.no_grad()
    def run(images: Tensor) -> Tensor:
        # The first call with a batch size is what compiles; asking for freezing at each call would
        # cost more than a small batch.
        freezing = nullcontext() if len(images) in ready else inductor.patch(freezing=True)
        ready.add(len(images))
        with freezing:
            logits: Tensor = compiled(images)
        return logits

    return run


@torch.no_grad()
def computed(network: nn.Module | Run, test: Images) -> np.ndarray[Any, Any]:
    """Return the logits of all test images: float64 [n, classes]."""
    return torch.cat([network(batch).double() for batch in test.batches()]).numpy()


def compared(picked: Classes, test: Images, references: dict[str, Classes]) -> dict[str, Any]:
    """Compare the classes `picked` with PyTorch's float32 (`paired_accuracy`) and with our int8.

    None for the agreement with ours where there is no int8 network.
    """
    ours = references.get("int8")
    same = None if ours is None else 100 * int((picked == ours).sum()) / len(test)
    return paired(test.labels, references["float32"], picked) | {"agreement_ours_percent": same}


def interleaved_seconds(
    runs: dict[str, Run], images: Tensor, round_seconds: float = ROUND_SECONDS
) -> dict[str, list[float]]:
    """Time each of `runs` on `images`: seconds per call, one figure per round of `round_seconds`.

    In each round every one of them has its turn, so that a machine that becomes slower does so
    for all. The first call, which may compile, is not timed; nor is the first of each round.
    """

    def timed(run: Run, calls: int) -> float:
        run(images)
        start = time.perf_counter()
        for _ in range(calls):
            run(images)
        return (time.perf_counter() - start) / calls

    calls = {name: max(1, round(round_seconds / timed(run, 1))) for name, run in runs.items()}
    rounds = [{name: timed(run, calls[name]) for name, run in runs.items()} for _ in range(ROUNDS)]
    return {name: [seconds[name] for seconds in rounds] for name in runs}
