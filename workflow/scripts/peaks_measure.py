"""Measure this machine's peak rates: matrix products by precision, and copies.

Each rate is measured several times after a warm-up, on random numbers. On a GPU: float32, TF32 and
bf16, copies within the first GPU and between every two. On a CPU: float32, bf16 and copies within
the host's memory, by one process.
"""

from scaling.core import command_line, environment
from scaling.core.errors import program
from scaling.core.records.machine import PEAKS
from scaling.instruments.options import Probe
from scaling.launch import launcher, measure


@program
def main(argv: list[str] | None = None) -> None:
    """Write peaks.json: `rows` of `instruments.peaks`; `gpus` is 0 on a CPU."""
    probe = command_line.parse(Probe, argv, __doc__)
    device = environment.resolve_device(probe.device)
    log_folder = launcher.worker_folder()
    if log_folder is not None:
        from scaling.instruments import peaks

        peaks.run(probe, device, log_folder)
        return
    found = measure.run(
        __file__,
        argv,
        probe.output,
        name="measuring the machine's limits",
        advice="; where memory is short, ask for smaller matrices or copies",
        device=device,
        gpus=probe.gpus,
        processes=1,
        cpu_threads=probe.cpu_threads,
        time_limit=probe.time_limit_seconds,
    )
    document = {
        "device": device,
        "gpus": found.gpus,
        "cpu_threads": probe.cpu_threads,
        "rows": [line["row"] for line in found.of("row")],
        "environment": found.environment,
    }
    PEAKS.write(probe.output, document)
