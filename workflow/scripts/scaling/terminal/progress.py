"""Print one line per finished measurement, the remaining time, and where the report is."""

import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scaling.config import devices, stored
from scaling.core import environment, files
from scaling.core.errors import UserError, printable
from scaling.core.grid import RUN_KEYS, Cell
from scaling.core.records.run import RUN
from scaling.tables import timing
from scaling.terminal import state

say = logging.getLogger("snakemake.logging").info


class Progress:
    """Prints the progress of a study as Snakemake's log events come."""

    def __init__(
        self,
        workflow: Any,
        config: dict[str, Any],
        records: str,
        results: str,
        images: str,
        waits_for: Callable[[str, int], str],
    ) -> None:
        self._workflow, self._config = workflow, config
        self._records, self._results, self._images = map(Path, (records, results, images))
        self._jobs: dict[int, Any] = {}
        self._places: dict[int, list[Path]] = {}
        """Records that each measuring job writes, as paths relative to the folder of records."""
        self._done, self._start = 0, time.time()
        self._waits_for = waits_for
        self._here = self._on_cpu = False
        """Whether jobs start on this machine, and whether they are timed on its CPU."""
        self._lacks = ""
        """Why this machine could not run the measurements of a dry run."""
        logging.getLogger("snakemake.logging").addFilter(self.follow)

    def follow(self, record: Any) -> bool:
        """Handle an event before Snakemake shows it. An exception never stops the study."""
        event = getattr(getattr(record, "event", None), "name", str(record.msg))
        number = getattr(record, {"JOB_FINISHED": "job_id"}.get(event, "jobid"), None)
        try:
            if event == "RUN_INFO" and not self._jobs:
                self._begin()
            elif event in ("JOB_ERROR", "JOB_FINISHED"):
                for log in self._jobs[number].log if number in self._jobs else ():
                    files.bound_log(Path(log))
                if event == "JOB_FINISHED" and number in self._places:
                    self._finished(number)
            elif event == "JOB_INFO" and number in self._places and self._here:
                job = self._jobs[number]
                gpus = int(job.resources.get("gpu", 0))
                if held := self._waits_for(self._config["device"], gpus):
                    say(f"{job.rule.name} waits: {held}")
            elif event.startswith("This was a dry-run"):
                say(self._lacks)
            elif event.startswith("Nothing to be done"):
                self._link()
        except Exception:
            traceback.print_exc()
        return True

    def _begin(self) -> None:
        """Store the jobs to run; exit with one sentence if they cannot run on this machine."""
        workflow, dag = self._workflow, self._workflow.dag
        self._jobs = {dag.jobid(job): job for job in dag.needrun_jobs()}
        for number, job in self._jobs.items():
            paths = [Path(path) for path in job.output if Path(path).is_relative_to(self._records)]
            places = [path.relative_to(self._records) for path in paths if path.suffix == ".json"]
            if places and places[0].parts[0] in stored.RECORDS:
                self._places[number] = places
        wanted = max(int(job.resources.get("gpu", 0)) for job in self._jobs.values())
        granted = workflow.global_resources.get("gpu")
        # A dry run is local even if jobs would run elsewhere; only its threads show that.
        threads = workflow.dryrun and workflow.execution_settings.use_threads
        here = workflow.local_exec and not threads
        self._here = here and not workflow.dryrun
        if gone := " ".join(map(str, self._gone())):
            sys.exit(
                f"error: {gone}: missing, so all would be measured again; make this first "
                f"(snakemake {gone})"
            )
        try:
            if wanted and here:
                devices.check(self._config, wanted, granted.value if granted else None)
        except UserError as error:
            if not workflow.dryrun:
                sys.exit(f"error: {error}")
            self._lacks = printable(f"This machine could not run it: {error}.")
        gpus = environment.visible_gpus() and self._config["device"] != "cpu"
        self._on_cpu = here and not gpus

    def _gone(self) -> Iterator[Path]:
        """Yield each missing input whose absence makes Snakemake repeat finished runs."""
        places = [place for places in self._places.values() for place in places]
        again = [one for one in places if one.parts[0] == "runs" and (self._records / one).exists()]
        path, check = self._results / stored.CONFIG, self._records / stored.MACHINE
        before = stored.read_config(path) if again and path.exists() else self._config
        if again and before["machine"]["check"] != "off" and not check.exists():
            yield check
        if again and before["dataset"] == self._config["dataset"] and not self._images.exists():
            yield self._images

    def _finished(self, number: int) -> None:
        """Print one line about a finished measurement, and the estimated remaining time."""
        self._done += 1
        due = len(self._places) - self._done
        if due and not self._on_cpu:
            self.render_partial()
        # In a terminal, profiles/local shows progress bars.
        if sys.stderr.isatty() and "rich" in self._workflow.output_settings.log_handler_settings:
            return
        left = ""
        if 0 < due <= self._done:
            left = f", about {state.time_left(self._start, self._done, due)} left"
        say(f"[{self._done} of {len(self._places)}] {self._outcome(number)}{left}")

    def _outcome(self, number: int) -> str:
        """Return the result of a measurement as text."""
        place = self._places[number][0]
        if place.name != "run.json":
            return str(Path(self._jobs[number].log[0]).relative_to("logs").with_suffix(""))
        record = RUN.read(self._records / place)
        seconds = timing.epochs([record], "measured")["seconds"]
        result = f"{seconds.median():.3g} s an epoch" if len(seconds) else record["status"]
        return f"{Cell(**{key: record['cell'][key] for key in RUN_KEYS})}: {result}"

    def render_partial(self) -> None:
        """Start `make report` in the background: one at a time, on one core, at lowest priority."""
        if self._done:
            file = self._workflow.main_snakefile
            command = ["flock", "--nonblock", file, "nice", "-n", "19", sys.executable, "-m"]
            command += ["snakemake", "--nolock", "--cores", "1", "--snakefile", file]
            with Path("logs/partial.log").open("a") as log:
                command += ["--config", "replay=results"]
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def fail(self) -> None:
        """Start a report of existing runs; print where it will be, and how to list all failures."""
        self.render_partial()
        say(
            "make status lists the state of each run, and the logs of failed ones; the report of "
            "existing runs will be in results/partial/report.html."
        )

    def end(self, log: Path) -> None:
        """If the report was rendered, print `log` with the headline, and the report's path."""
        if any(job.rule.name == "report_render" for job in self._jobs.values()):
            say(log.read_text(encoding="utf-8").rstrip())
            self._link()

    def _link(self) -> None:
        report = (self._results / "report.html").resolve()
        if report.exists():
            say(f"The report is {report.as_uri()}")
