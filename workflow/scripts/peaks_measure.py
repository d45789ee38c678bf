"""Measure this machine's peak rates: matrix products by precision, and copies.

On a GPU: float32, TF32 and bf16, copies within the first GPU and between every two. On a CPU:
float32, bf16 and copies within the host's memory, by one process.
"""

from scaling.core import command_line
from scaling.core.errors import program
from scaling.core.records.experiments import PEAKS
from scaling.launch import launcher, measure
from scaling.launch.measure import Probe


@program
def main(argv: list[str] | None = None) -> None:
    """Write peaks.json: `rows` of `instruments.peaks`; `gpus` is 0 on a CPU."""
    probe = command_line.parse(Probe, argv, __doc__)
    if log_folder := launcher.worker_folder():
        from scaling.instruments import peaks

        peaks.run(probe, log_folder)
        return
    advice = "; where memory is short, ask for smaller matrices or copies"
    name = "measuring the machine's limits"
    found = measure.run(__file__, argv, probe, name=name, advice=advice, processes=1)
    document = {
        "device": found.environment["device"],
        "gpus": len(found.environment["device_ids"]),
        "cpu_threads": probe.cpu_threads,
        "rows": [line["row"] for line in found.of("row")],
        "environment": found.environment,
    }
    PEAKS.write(probe.output, document)
