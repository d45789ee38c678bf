"""torchao's PT2E quantization, compiled by Inductor, as a peer. torchao is imported when built."""

import io

import torch
from torch import Tensor, nn

from scaling.quantization.peer import Batches, Peer, Run

OPTIONS = (
    "PT2E with the X86 Inductor quantizer's own choices: weights int8 symmetric per channel, "
    "activations uint8 with zero point per tensor, histogram calibration; torch.compile with "
    "freezing"
)


@torch.no_grad()
def build(network: nn.Sequential, batches: Batches, threads: int) -> Peer:
    """The float `network` and what PT2E makes of it, each compiled for the batch it is called with.

    Sets the number of threads of torch itself, whose Inductor is this peer's engine.
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
    return Peer(
        options=OPTIONS,
        runs={precision: _run(found) for precision, found in networks.items()},
        file_bytes={
            precision: _file_bytes(_exported(found, example))
            for precision, found in networks.items()
        },
    )


def _exported(network: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(
        network, (example,), dynamic_shapes=({0: torch.export.Dim("n", max=2**16)},)
    )


def _without_unread(network: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Without the float weights that the graph no longer reads, so that no file holds them."""
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


def _run(network: nn.Module) -> Run:
    from torch._inductor import config as inductor

    compiled = torch.compile(network, dynamic=False)
    ready: set[int] = set()

    @torch.no_grad()
    def run(images: Tensor) -> Tensor:
        if len(images) in ready:
            logits: Tensor = compiled(images)
            return logits
        # The first call with a batch size is what compiles; asking for freezing at each call would
        # cost more than a small batch.
        with inductor.patch(freezing=True):
            logits = compiled(images)
        ready.add(len(images))
        return logits

    return run
