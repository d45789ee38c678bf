"""A study whose processes are looked at and killed."""

import subprocess
import time

import psutil

from small_study import BackgroundStudy

PATIENCE_SECONDS = 60


class FaultyStudy(BackgroundStudy):
    """A study whose processes are looked at and killed."""

    def command(self, *options):
        """As profiles/local does after a kill."""
        return super().command(*options, "--ignore-incomplete")

    def finish(self, *options):
        """Run Snakemake to its end and return what it said."""
        assert self.start(*options).wait() == 0, self.output()
        return self.output()

    def unlock(self):
        subprocess.run(self.command("--unlock"), cwd=self.folder, check=True, capture_output=True)

    def processes(self):
        """All that work in the study's folder, whoever their parents are."""
        found = psutil.process_iter(["cwd", "name", "cmdline"], ad_value="")
        return [process for process in found if process.info["cwd"] == str(self.folder)]

    def orphans(self):
        """Those that live on although they were given time to end."""
        return psutil.wait_procs(self.processes(), timeout=PATIENCE_SECONDS)[1]

    def end(self):
        for process in self.processes():
            process.kill()
        super().end()

    def said_by_ranks(self):
        """What the ranks of a training have reported."""
        found = (self.folder / "results").rglob(".run.ranks.*/rank*.jsonl")
        return "".join(path.read_text() for path in found)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 2 * PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"no {what}: {self.output()}"
            time.sleep(0.1)

    def logs(self):
        return "".join(path.read_text() for path in self.folder.glob("logs/**/*.log"))

    def left_over(self):
        """Files that stand for nothing: of writers and of ranks that were killed."""
        return [path.name for path in (self.folder / "results").rglob(".*")]
