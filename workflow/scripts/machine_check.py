"""Check the machine before a study measures on it, and refuse one that would distort results.

CPUs: load and governor. GPUs: other processes, free memory, errors, connections, and matrix
products on all of them at once.
"""

from pathlib import Path

from scaling.core import code_digest, command_line, environment
from scaling.core.errors import UserError, program
from scaling.core.records.experiments import CHECK
from scaling.instruments import machine
from scaling.launch import launcher, measure
from scaling.launch.measure import MachineCheck


@program
def main(argv: list[str] | None = None) -> None:
    """Write check.json: `hosts`, `gpus` and `findings` of `instruments.machine`."""
    check = command_line.parse(MachineCheck, argv, __doc__)
    if log_folder := launcher.worker_folder():
        from scaling.launch import ranks

        ranks.start(check.gpus, machine.run, check, log_folder)
        return
    if (device := environment.resolve_device(check.device)) == "cpu":
        code = code_digest.digest(Path(__file__), measuring=True)
        surroundings = environment.describe(device) | {"code_digest": code}
        hosts, gpus = [machine.host()], []
    elif not check.products:
        surroundings = environment.describe(device)
        hosts, gpus = [machine.host()], [*map(machine.gpu, environment.visible_gpus())]
    else:
        about = {"name": "looking at the machine", "advice": "; machine.check: off does without it"}
        found = measure.run(__file__, argv, check, processes=check.gpus, **about)
        hosts = [line["host"] for line in found.of("host")]
        gpus = [line["gpu"] for line in found.of("gpu")]
        surroundings = found.environment
    findings = machine.judge(hosts, gpus)
    said = [f"{one['host']} {one['gpu']}".strip() + f": {one['message']}" for one in findings]
    print("\n".join(said) or "nothing to remark")
    bad = sum(one["severity"] == "bad" for one in findings)
    if bad and check.check == "refuse":
        raise UserError(f"{'; '.join(said[:bad])} (machine.check: warn measures all the same)")
    document = {"check": check.check, "hosts": hosts, "gpus": gpus, "findings": findings}
    ended = {"ended": environment.now()}
    CHECK.write(check.output, document | {"environment": surroundings | ended})
