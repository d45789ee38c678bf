"""Measure a machine (its state, peak rates, links), or how ranks synchronize.

python workflow/scripts/measure.py '{"check": {"output": "check.json", "device": "cpu"}}'
"""

from typing import Any

from scaling.core import code_digest, command_line, environment
from scaling.core.errors import UserError
from scaling.core.records.kind import CHECK, PEAKS, SWEEP, SYNCHRONIZATION
from scaling.instruments import machine
from scaling.launch import measure, supervisor
from scaling.launch.measure import MachineCheck, Probe, Sweep
from scaling.synchronization.plan import Plan


def check_machine(check: MachineCheck) -> None:
    """Check the machine and write check.json.

    Raise UserError if `check.check` is "refuse" and a finding has the severity "bad".
    """
    device = environment.resolve_device(check.device)
    if device == "cuda" and check.products:
        about = {"name": "looking at the machine", "advice": "; machine.check: off does without it"}
        found = measure.run(f"{machine.__name__}:start", check, processes=check.gpus, **about)
        hosts, gpus, surroundings = found.of("host"), found.of("gpu"), found.environment
    else:
        code = code_digest.digest(machine.__name__, measuring=True)
        surroundings = environment.describe(device) | {"code_digest": code}
        entries = environment.visible_gpus() if device == "cuda" else []
        hosts, gpus = [machine.host()], [*map(machine.gpu, entries)]
    findings = machine.judge(hosts, gpus)
    sentences = [f"{one['host']} {one['gpu']}".strip() + f": {one['message']}" for one in findings]
    print("\n".join(sentences) or "nothing to remark")
    bad = sum(one["severity"] == "bad" for one in findings)
    if bad and check.check == "refuse":
        raise UserError(f"{'; '.join(sentences[:bad])} (machine.check: warn measures all the same)")
    document = {"check": check.check, "hosts": hosts, "gpus": gpus, "findings": findings}
    ended = surroundings | {"ended": environment.now()}
    CHECK.write(check.output, document | {"environment": ended})


def measure_peaks(probe: Probe) -> None:
    """Measure the peak rates of matrix products and copies; write peaks.json."""
    advice = "; where memory is short, ask for smaller matrices or copies"
    about = {"name": "measuring the machine's limits", "advice": advice}
    found = measure.run("scaling.instruments.peaks:start", probe, processes=1, **about)
    document = {
        "device": found.environment["device"],
        "gpus": len(found.environment["device_ids"]),
        "cpu_threads": probe.cpu_threads,
        "rows": found.of("row"),
        "environment": found.environment,
    }
    PEAKS.write(probe.output, document)


def sweep_messages(sweep: Sweep) -> None:
    """Time all-reduces of many sizes; write sweep.json, also if the time limit ends it."""
    about: Any = {"name": f"the all-reduce sweep over {sweep.gpus} GPUs", "processes": sweep.gpus}
    found = measure.run("scaling.instruments.allreduce:start", sweep, keep="row", **about)
    if found.timed_out:
        limit = f"its time limit of {sweep.time_limit_seconds:g} s"
        print(f"warning: {about['name']} reached {limit}: the sizes not printed above are missing")
    device = found.environment["device"]
    document = {
        "gpus": sweep.gpus,
        "backend": "nccl" if device == "cuda" else "gloo",
        "device": device,
        "gradient_bytes": found.lines["model"][0]["gradient_bytes"],
        "rows": found.of("row"),
        "environment": found.environment,
    }
    SWEEP.write(sweep.output, document)


def compare_ranks(plan: Plan) -> None:
    """Compare images, messages and buffers of a training's ranks; write synchronization.json."""
    spec = plan.spec_of(plan.trainings[0])
    if reason := supervisor.infeasible_reason(spec, plan.images):
        raise UserError(f"{reason}: set synchronization.batch_size to a smaller value")
    found = measure.run(
        "scaling.synchronization.worker:start",
        plan,
        name=f"the synchronization experiments on {plan.gpus} GPUs",
        advice="; where memory is short, set synchronization.batch_size to a smaller value",
        processes=plan.gpus,
    )
    document = {
        "gpus": plan.gpus,
        "device": spec.device,
        "backend": "nccl" if spec.device == "cuda" else "gloo",
        "train_images": plan.images,
        "parameters": spec.parameters() | {"batch_size": plan.batch_size},
        "model": found.of("model")[0],
        "steps": found.of("steps"),
        "trainings": found.of("training"),
        "seconds": found.seconds,
        "environment": found.environment,
    }
    SYNCHRONIZATION.write(plan.output, document)


@command_line.script
def main(
    check: MachineCheck | None = None,
    probe: Probe | None = None,
    sweep: Sweep | None = None,
    plan: Plan | None = None,
) -> None:
    """Make each measurement whose options are given; UserError if none are."""
    wanted: dict[Any, Any] = {check_machine: check, measure_peaks: probe}
    wanted |= {sweep_messages: sweep, compare_ranks: plan}
    if not any(wanted.values()):
        raise UserError("nothing to measure: give check, probe, sweep or plan")
    for measurement, options in wanted.items():
        if options:
            measurement(options)
