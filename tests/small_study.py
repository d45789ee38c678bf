"""A small study, which Snakemake runs in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

import yaml
from snakemake import cli

from examples.configurations import ROOT, assign, shipped
from forked import become
from scaling.core.grid import Cell

KEPT = ".snakemake/code_digests"
JOB = re.compile(r"^(?:local)?rule (\w+):", re.MULTILINE)


def forked(arguments, folder):
    """Run Snakemake in a fork of this process, which has imported it."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if not child:
            become(lambda: _snakemake(arguments, folder, output.fileno()))
        _, status = os.waitpid(child, 0)
        output.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(arguments, code, stdout=output.read())


def _snakemake(arguments, folder, output):
    """Run Snakemake in this process, with the project's modules imported anew from `folder`."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    ours = ("scaling", "grader", "extras")
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    sys.argv = ["snakemake", *arguments]
    cli.main(arguments)


def link_digests(folder):
    """Link the cache of module digests into a copy of the project, because parsing takes long."""
    (ROOT / KEPT).mkdir(parents=True, exist_ok=True)
    (folder / KEPT).parent.mkdir()
    (folder / KEPT).symlink_to(ROOT / KEPT)


class Study:
    """A copy of the project without tests, whose configuration is `tiny.yaml`."""

    process = None

    def __init__(self, folder, overrides=None):
        """Copy the project if there are `overrides`. Otherwise, use the copy in `folder`."""
        self.folder = folder
        if overrides is None:
            self.config = yaml.safe_load((folder / "tiny.yaml").read_text())
            return
        folder.mkdir(parents=True, exist_ok=True)
        files = "git ls-files -z --cached --others --exclude-standard ':!tests'"
        copy = f'{files} | tar -c --null -T - | tar -x -C "$0"'
        subprocess.run(["sh", "-c", copy, folder], cwd=ROOT, check=True)
        link_digests(folder)
        self.config = shipped("demo.yaml")
        self.configure(overrides)

    def configure(self, overrides):
        """Change values, given as {"section.key": value}, and write the configuration."""
        assign(self.config, overrides.items())
        (self.folder / "tiny.yaml").write_text(yaml.safe_dump(self.config))

    def command(self, *options):
        return ["snakemake", "--cores", "2", *options, "--configfile", "tiny.yaml"]

    def snakemake(self, *options):
        """Run Snakemake. In the result, `stdout` has both stdout and stderr."""
        return forked(self.command(*options)[1:], self.folder)

    def make(self, *words):
        """Run make in the environment of this test. In the result, `stdout` has both streams."""
        command = ["make", "--no-print-directory", "--old-file=env", "--old-file=small-env", *words]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.run(command, cwd=self.folder, **streams)

    def planned(self, *options):
        """Return the number of planned jobs of each rule, without the target `all`."""
        finished = self.snakemake("--dry-run", *options)
        assert finished.returncode == 0, finished.stdout
        return Counter(rule for rule in JOB.findall(finished.stdout) if rule != "all")

    def record(self, **cell):
        usual = {"recipe": "plain", "strategy": "ddp", "gpus": 1, "batch_size": 10, "seed": 0}
        return Cell(**usual | cell).record_path(self.folder / "results/runs")

    def edit(self, name, text="\n# edited\n"):
        path = self.folder / name
        path.write_text(path.read_text() + text)

    def target(self, **cell):
        """Return the path of a run's record, relative to the study's folder, as a target."""
        return str(self.record(**cell).relative_to(self.folder))

    def start(self, *options, **variables):
        """Start Snakemake in a process, with additional environment variables."""
        settings = {"cwd": self.folder, "env": os.environ | variables, "stderr": subprocess.STDOUT}
        with (self.folder / "output.txt").open("w") as output:
            self.process = subprocess.Popen(self.command(*options), stdout=output, **settings)
        return self.process

    def end(self):
        """Kill the process of `start`."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def output(self):
        return (self.folder / "output.txt").read_text()


SECTIONS = {
    "dataset": {"source": "synthetic", "train_images": 60, "test_images": 20},
    "model": {"width": 1},
    "grid": {"gpus": [1], "batch_sizes": [10, 20]},
    "training": {"measured_epochs": 3},
    "recipes.plain": {"loader_workers": 1},
    "interconnect": {"message_bytes": [4096, 65536], "iterations": 1, "repeats": 3},
    "peaks": {"matrix_sizes": [64], "copy_bytes": 2**20},
    "convergence": {"global_batches": [10], "reference_batch": 10, "epochs": 1, "seeds": [0]},
    "synchronization": {"epochs": 2, "batch_size": 5},
    "quantization": {"seeds": [0], "epochs": 1},
}
TINY = {f"{name}.{key}": value for name, keys in SECTIONS.items() for key, value in keys.items()}
MISTAKEN = {"name": "mistake-255_for_127", "mistake": "255_for_127"}
TINY |= {"study": "tiny", "quantization.variants": [{"name": "weights+activations+bias"}, MISTAKEN]}


def studies(kind, new_folder, always=None):
    """Yield a function that creates studies with changed values (`a__b`: key a.b). End them."""
    made = []

    def make(**overrides):
        changed = {name.replace("__", "."): value for name, value in overrides.items()}
        made.append(kind(new_folder(), TINY | (always or {}) | changed))
        return made[-1]

    yield make
    for study in made:
        study.end()


def copied(folder, target):
    """Copy the study in `folder` to `target`, with the files' times; return the copy."""
    return Study(shutil.copytree(folder, target, symlinks=True))
