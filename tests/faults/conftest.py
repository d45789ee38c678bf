"""Small studies with real processes, which tests inspect and kill."""

import time
from functools import partial

import psutil
import pytest

from scaling.launch import lease
from small_study import Study, studies

PATIENCE_SECONDS = 60


class FaultyStudy(Study):
    """A study whose processes can be listed and killed."""

    def command(self, *options):
        """Return the command, with the option for killed runs that profiles/local contains."""
        return super().command(*options, "--ignore-incomplete")

    def finish(self, *options):
        """Run Snakemake until it ends."""
        assert self.start(*options).wait() == 0, self.output()

    def processes(self):
        """Return all processes whose working directory is the study's folder."""
        found = psutil.process_iter(["cwd", "name", "cmdline"], ad_value="")
        return [process for process in found if process.info["cwd"] == str(self.folder)]

    def orphans(self):
        """Return the processes of the study that are still alive after `PATIENCE_SECONDS`."""
        return psutil.wait_procs(self.processes(), timeout=PATIENCE_SECONDS)[1]

    def end(self):
        for process in self.processes():
            process.kill()
        super().end()

    def wait_for_training(self):
        """Wait until the ranks of a training have reported."""
        reports = (self.folder / "results").rglob
        self.wait_for(
            lambda: any('"startup"' in path.read_text() for path in reports(".run.ranks.*/rank*"))
        )

    def wait_for(self, condition):
        deadline = time.monotonic() + 2 * PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.1)


@pytest.fixture(scope="session", autouse=True)
def leases():
    """Let timed jobs wait for each other, as they do outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(lease.SHARE_VARIABLE, raising=False)
        yield


@pytest.fixture
def new_study(tmp_path_factory):
    """Return a function that creates a study with changed values, and end the processes."""
    new_folder = partial(tmp_path_factory.mktemp, "study")
    yield from studies(FaultyStudy, new_folder, {"machine.check": "off"})
