"""Print a line per finished measurement and the remaining time; implements `make status`."""

import logging
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from scaling.config import config as configuration
from scaling.config import devices, stored
from scaling.core import command_line, environment, files, grid
from scaling.core.errors import UserError, printable
from scaling.core.grid import Cell
from scaling.core.records.run import RUN, RunRecord
from scaling.tables import timing

RESULTS, LOGS = stored.RESULTS, Path("logs")
REPLAY = "replay=results"
NOT_OF_OTHERS = ("train_run", "replay", "partial")
"""Folders with logs of runs and reports. All other folders have logs of other measurements."""
TRAIN = {"runs", "convergence", "to_accuracy", "experiments", "quantization"}
"""Folders of records whose jobs train on images. Only `quantization` needs no machine check."""
say = logging.getLogger("snakemake.logging").info


def outcome(record: RunRecord) -> str:
    """Return text: a run's configuration, seconds of an epoch if known, and status if not "ok"."""
    seconds, status = timing.epochs([record], "measured")["seconds"], record["status"]
    whole = record["training"].get("epoch_lines") == 0
    unit = "s in all, as no epoch was printed" if whole else "s an epoch"
    known = [f"{seconds.median():.3g} {unit}"] * bool(len(seconds))
    return f"{Cell(**record['cell'])}: {', '.join([*known, *[status] * (status != 'ok')])}"


class Progress:
    """Prints the progress of a study whenever Snakemake logs an event."""

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
        self._places: dict[int, Path] = {}
        """Maps the id of a job to the path of its record, relative to the folder of records."""
        self._done, self._start = 0, time.time()
        self._waits_for = waits_for
        self._here = self._on_cpu = False
        """Whether jobs start on this machine, and whether they are timed on its CPU."""
        logging.getLogger("snakemake.logging").addFilter(self.follow)

    def follow(self, record: Any) -> bool:
        """Handle an event of Snakemake's log. Always return True, which lets Snakemake show it."""
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
            elif event.startswith("Nothing to be done"):
                self._link()
        except Exception:
            traceback.print_exc()
        return True

    def _begin(self) -> None:
        """Store the jobs to run; exit with a message if they cannot run on this machine."""
        workflow, dag = self._workflow, self._workflow.dag
        self._jobs = {dag.jobid(job): job for job in dag.needrun_jobs()}
        for number, job in self._jobs.items():
            path = next((Path(path) for path in job.output if path.endswith(".json")), Path())
            kinds = {self._records / kind for kind in stored.RECORDS}
            if not kinds.isdisjoint(path.parents):
                self._places[number] = path.relative_to(self._records)
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
            # Jobs elsewhere, or in environments of their own (--sdm), may have other programs.
            if self._places and here and not workflow.deployment_settings.deployment_method:
                devices.check_programs(self._config)
            if wanted and here:
                devices.check(self._config, wanted, granted.value if granted else None)
        except UserError as error:
            if not workflow.dryrun:
                sys.exit(f"error: {error}")
            say(printable(f"This machine could not run it: {error}."))
        gpus = environment.visible_gpus() and self._config["device"] != "cpu"
        self._on_cpu = here and not gpus

    def _gone(self) -> Iterator[Path]:
        """Yield each missing input whose absence makes Snakemake repeat finished trainings."""
        places = self._places.values()
        again = {one.parts[0] for one in places if (self._records / one).exists()} & TRAIN
        path, check = self._results / stored.CONFIG, self._records / stored.MACHINE
        before = stored.read_config(path) if again and path.exists() else self._config
        if again - {"quantization"} and before["machine"]["check"] != "off" and not check.exists():
            yield check
        same, source = before["dataset"] == self._config["dataset"], before["dataset"]["source"]
        if again and same and source != configuration.OWN and not self._images.exists():
            yield self._images

    def _finished(self, number: int) -> None:
        """Print one line about a finished measurement, and the estimated remaining time."""
        self._done += 1
        due = len(self._places) - self._done
        if due and not self._on_cpu:
            self.render_partial()
        left = ""
        if 0 < due <= self._done:
            left = f", about {time_left(self._start, self._done, due)} left"
        say(f"[{self._done} of {len(self._places)}] {self._outcome(number)}{left}")

    def _outcome(self, number: int) -> str:
        """Return the result of a measurement as text."""
        place = self._places[number]
        if place.name != "run.json":
            return str(Path(self._jobs[number].log[0]).relative_to("logs").with_suffix(""))
        return outcome(RUN.read(self._records / place))

    def render_partial(self) -> None:
        """Start `make report` in the background (1 core, lowest priority), unless it is running."""
        if self._done:
            file = self._workflow.main_snakefile
            command = ["flock", "--nonblock", file, "nice", "-n", "19", sys.executable, "-m"]
            command += ["snakemake", "--nolock", "--cores", "1", "--snakefile", file]
            with Path("logs/partial.log").open("a") as log:
                command += ["--config", REPLAY]
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def fail(self) -> None:
        """Start `make report` of the existing runs. Print where the report and failures will be."""
        self.render_partial()
        say(
            "make status lists the state of each run, and the logs of failed ones; the report of "
            "existing runs will be in results/partial/report.html."
        )

    def end(self, log: Path) -> None:
        """If the report was rendered, print its headline (the text in `log`) and its path."""
        if any(job.rule.name == "report_render" for job in self._jobs.values()):
            say(log.read_text(encoding="utf-8").rstrip())
            self._link()

    def _link(self) -> None:
        report = (self._results / "report.html").resolve()
        if report.exists():
            say(f"The report is {report.as_uri()}")


def time_left(since: float, done: int, due: int) -> timedelta:
    """Return the estimated time for `due` measurements; `done` ended since Unix time `since`."""
    return timedelta(seconds=round(due * (time.time() - since) / done))


def study_status(config: dict[str, Any], since: float) -> str:
    """Return the state of the study in results/ as text.

    `since` is when the study's Snakemake started, in seconds since 1970, or infinity if none runs.
    """
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    wanted = stored.records(config)
    others = [place for kind, places in wanted.items() if kind != "runs" for place in places]
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    rows, logs = [], {}
    for place, cell in cells.items():
        log, strategy = cell.log_path(LOGS), cell.strategy if cell.gpus > 1 else ""
        state, logs[log] = _state(log, since, RESULTS / place)
        rows.append([cell.recipe, strategy, cell.gpus, cell.batch_size, state])
    runs = pd.DataFrame(rows, columns=["recipe", "strategy", "GPUs", "batch_size", "state"])
    if not there.issuperset(others):
        paths = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _state(log, since)[1] for log in paths}
    counted = f": {_counted(runs['state'], 0)}" if cells else ""
    first = {*(cells or others)}
    runs_now = "" if since < math.inf else "not "
    head = f"{config['study']} ({RESULTS / stored.CONFIG}), {runs_now}running, "
    lines = [f"{head}{len(there & first)} of {len(first)}{counted}\n"]
    if cells:
        keys, sizes = ["recipe", "strategy", "GPUs"], "batch_size"
        table = runs.pivot_table("state", keys, sizes, _counted, sort=False, fill_value="-")
        lines.append(table.reset_index().rename_axis(columns=None).to_string(index=False) + "\n")
    lines.append(f"Other measurements: {len(there & {*others})} of {len(others)} done")
    lines += [f"{log}\n  {error}" for log, error in logs.items() if error]
    return "\n".join(lines)


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return text such as `2 done, 1 waiting`. For at most `alone` runs, omit the numbers."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _state(log: Path, since: float, record: Path | None = None) -> tuple[str, str]:
    """Return a run's state (from its record or, without one, its log), and its error or ""."""
    try:
        if record and record.exists():
            return RUN.read(record)["status"].replace("ok", "done"), ""
    except UserError as invalid:
        return "failed", str(invalid)
    lines = files.log_end(log).splitlines() if log.exists() else []
    if error := next((line for line in reversed(lines) if "rror: " in line), ""):
        return "failed", error
    waits = lines and lines[-1].startswith(("waits for", "Slurm has not begun"))
    begun = log.exists() and log.stat().st_mtime >= since and not waits
    return "running" if begun else "waiting", ""


@command_line.script
def main() -> None:
    """Print the state of the study in results/. At least its first job must have begun."""
    study, here = stored.read(RESULTS), str(Path.cwd())
    processes = [one.info for one in psutil.process_iter(["cmdline", "create_time", "cwd"])]
    started = [
        process["create_time"]
        for process in processes
        if process["cwd"] == here and "snakemake" in " ".join(process["cmdline"][:3])
        if REPLAY not in process["cmdline"]
    ]
    print(printable(study_status(study, min(started, default=math.inf))))
