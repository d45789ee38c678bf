"""Measure all-reduce between processes, on one machine or several, over message sizes.

The requested sizes are extended by the gradients of the study's model as one message, and by each
of the buckets of DistributedDataParallel and recipe tuned; these come first. Every sum is checked.
At the time limit the sweep ends with what it has.
"""

from scaling.core import command_line
from scaling.core.errors import program
from scaling.core.records.experiments import SWEEP
from scaling.launch import launcher, measure
from scaling.launch.measure import Sweep


@program
def main(argv: list[str] | None = None) -> None:
    """Write sweep.json: `rows` of `instruments.allreduce`, and the environment."""
    sweep = command_line.parse(Sweep, argv, __doc__)
    if log_folder := launcher.worker_folder():
        from scaling.instruments import allreduce
        from scaling.launch import ranks

        ranks.start(sweep.gpus, allreduce.run, sweep, log_folder)
        return
    name, count = f"the all-reduce sweep over {sweep.gpus} GPUs", sweep.gpus
    found = measure.run(__file__, argv, sweep, name=name, processes=count, keep="row")
    if found.timed_out:
        limit = f"its time limit of {sweep.time_limit_seconds:g} s"
        print(f"warning: {name} reached {limit}: the sizes not printed above are missing")
    device = found.environment["device"]
    document = {
        "gpus": sweep.gpus,
        "backend": "nccl" if device == "cuda" else "gloo",
        "device": device,
        "gradient_bytes": found.of("model")[0]["gradient_bytes"],
        "rows": [line["row"] for line in found.of("row")],
        "environment": found.environment,
    }
    SWEEP.write(sweep.output, document)
