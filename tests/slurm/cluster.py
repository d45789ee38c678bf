"""A real Slurm on this machine: munge, slurmctld and two slurmd with four GPUs each.

The GPUs are device files without a device. All daemons listen only on the loopback interface. All
state is in one temporary folder, except for two links in /etc/slurm. They are needed because the
executor of job steps removes SLURM_CONF from the environment. Slurm's log and prolog show which
GPUs each job step had, and which processes were started in it.
"""

import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from small_study import Study

NODES = ("n1", "n2")
GPUS_PER_NODE = 4
ETC = Path("/etc/slurm")
CONFIGURATION = ("slurm.conf", "gres.conf")
FOLDERS = Path(tempfile.gettempdir())
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
INSTALL = "apt-get install --no-install-recommends slurm-wlm munge"
PATIENCE_SECONDS = 300

SLURM_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
SlurmdTimeout=600
ReturnToService=0
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=2,batch_sched_delay=0
EnforcePartLimits=ALL
KillWait=3
MinJobAge=900
DebugFlags=Gres
TaskProlog={folder}/task_prolog
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=test Nodes=ALL Default=YES MaxTime=60
PartitionName=urgent Nodes=ALL MaxTime=60 PriorityTier=10
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
# Slurm runs it once for each process that it starts.
TASK_PROLOG = """#!/bin/sh
echo "$SLURM_JOB_ID $SLURM_STEP_ID $SLURMD_NODENAME" >> {folder}/tasks
"""
SIZE = f"CPUs=16 RealMemory=256000 Gres=gpu:{GPUS_PER_NODE}\n"


def reason_not_to_start():
    """Return why this machine cannot start the cluster, or None."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"Slurm is not installed ({', '.join(missing)} missing): {INSTALL}"
    if os.getuid() != 0:
        return "only root can start a Slurm of its own"
    configuration = ETC / "slurm.conf"
    # Killed tests leave links into a temporary folder.
    is_ours = configuration.is_symlink() and FOLDERS in configuration.readlink().parents
    if is_ours and not running("munged", "slurmctld", "slurmd", "slurmstepd"):
        for name in CONFIGURATION:
            (ETC / name).unlink(missing_ok=True)
    if configuration.is_symlink() or configuration.exists():
        return f"{configuration} exists: a Slurm is here, or its tests run"
    return None


@contextmanager
def cluster():
    """Run Slurm on this machine in a `with` block; yield the folder of its state.

    At the end, everything is removed.
    """
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        undo.callback(shutil.rmtree, folder)
        # munge wants a socket that everybody can reach.
        folder.chmod(0o755)
        _configure(folder, undo)
        files = ("key-file", "pid-file", "seed-file")
        munge = [f"--{name}={folder}/munge.{name}" for name in files]
        munge += [f"--log-file={folder}/munge.log", f"--socket={folder}/munge.sock"]
        _daemon(undo, folder, "munge", ["munged", "--foreground", "--force", *munge])
        wait_for((folder / "munge.sock").exists, "munge", folder)
        _daemon(undo, folder, "slurmctld", ["slurmctld", "-D"])
        for name in NODES:
            _daemon(undo, folder, name, ["slurmd", "-D", "-N", name])
        wait_for(lambda: idle_nodes() == set(NODES), "idle nodes", folder)
        undo.callback(_empty_queue, folder)
        yield folder


def _configure(folder, undo):
    for index in range(GPUS_PER_NODE):
        os.mknod(folder / f"gpu{index}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (folder / "state").mkdir()
    key = folder / "munge.key-file"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host = socket.gethostname()
    text = SLURM_CONF.format(folder=folder, host=host, port=_free_port())
    nodes = [NODE.format(name=name, host=host, port=_free_port()) + " " + SIZE for name in NODES]
    (folder / "slurm.conf").write_text("".join(nodes) + text)
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-{GPUS_PER_NODE - 1}]\n")
    prolog = folder / "task_prolog"
    prolog.write_text(TASK_PROLOG.format(folder=folder))
    prolog.chmod(0o755)
    if not ETC.exists():
        ETC.mkdir()
        undo.callback(ETC.rmdir)
    for name in CONFIGURATION:
        (ETC / name).symlink_to(folder / name)
        undo.callback((ETC / name).unlink)


def _daemon(undo, folder, name, command):
    with (folder / f"{name}.out").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    undo.callback(process.wait, PATIENCE_SECONDS)
    undo.callback(process.terminate)


def _empty_queue(folder):
    subprocess.run(["scancel", "--user=root"], check=True)
    wait_for(lambda: not queue(), "the queue to empty", folder)
    # What ran a job outlives it in the queue by a moment, and writes to the folder until its end.
    wait_for(lambda: not running("slurmstepd"), "the last job step to end", folder)


def running(*names):
    """Return the ids of processes with these names."""
    found = psutil.process_iter(["name"])
    return {process.pid for process in found if process.info["name"] in names}


def wait_for(condition, what, folder=None):
    """Wait until `condition()` is true. After `PATIENCE_SECONDS`, fail with the daemons' output."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            said = [path.read_text()[-3000:] for path in folder.glob("*.out")] if folder else []
            raise TimeoutError("\n".join([f"waited {PATIENCE_SECONDS} s for {what}", *said]))
        time.sleep(0.1)


def idle_nodes():
    command = ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"]
    return {*subprocess.run(command, capture_output=True, text=True).stdout.split()}


def queue():
    """Return squeue's line for each job that is pending, running or completing."""
    return _output("squeue", "--noheader").splitlines()


def jobs():
    """Return Slurm's fields of each job (`scontrol show job --details`), by id."""
    lines = _output("scontrol", "show", "job", "--details", "--oneliner").splitlines()
    found = (dict(re.findall(r"(\S+?)=(\S*)", line)) for line in lines)
    return {job["JobId"]: job for job in found if "JobId" in job}


def gpus_of_step(job):
    """Return the GPUs that a job step has on each of its nodes, as ["0-1", "0-1"]."""
    pattern = rf"^.*Step Alloc GRES:\n.*StepId={job['JobId']}\.0 .*\n((?:.*_alloc\[\d+\]:.*\n)+)"
    (given,) = re.findall(pattern, _state("slurmctld.out"), re.MULTILINE)
    return re.findall(r" gres_bit_alloc\[\d+\]:(\S+) of", given)


def processes_of_step(job):
    """Return the node of each process that Slurm started for a job step."""
    lines = [line.split() for line in _state("tasks").splitlines()]
    return sorted(node for *ids, node in lines if ids == [job["JobId"], "0"])


def _state(name):
    return (ETC / "slurm.conf").resolve().with_name(name).read_text()


def _output(*command):
    return subprocess.check_output(command, text=True)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class SlurmStudy(Study):
    """A study whose jobs run in Slurm, with access to Slurm's records of these jobs."""

    def command(self, *options):
        return ["snakemake", "--profile", "slurm", *options, "--configfile", "tiny.yaml"]

    def start(self, *options):
        """Start Snakemake with plugins on PYTHONPATH. `make env` installs them, too."""
        return super().start(*options, PYTHONPATH=str(self.folder / "workflow/plugins"))

    def jobs(self):
        """Return Slurm's records of this study's jobs, in the order of submission."""
        return [job for job in jobs().values() if job["WorkDir"] == str(self.folder)]

    def job(self, rule, *wildcards):
        """Return Slurm's record of the last job with this rule and these wildcards, or None."""
        comment = "_".join(["rule", rule, "wildcards", *map(str, wildcards)])
        return next((job for job in reversed(self.jobs()) if job["Comment"] == comment), None)

    def cell_job(self, gpus, batch_size):
        strategy = "single" if gpus == 1 else "ddp"
        return self.job("train_run", "plain", strategy, gpus, batch_size, 0, "")

    def wait_for_state(self, state, gpus, batch_size):
        wait_for(
            lambda: (self.cell_job(gpus, batch_size) or {}).get("JobState") == state,
            f"{gpus} GPUs, batch {batch_size} to be {state}",
        )
