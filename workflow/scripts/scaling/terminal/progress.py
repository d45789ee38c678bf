"""Progress of a study while Snakemake runs it: its size, each measurement, results at the end.

A handler of Snakemake's log; it also writes the page of the running study.
"""

import importlib
import logging
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import redirect_stderr
from datetime import datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scaling.claims import claim
from scaling.config import devices, stored
from scaling.core import environment, files
from scaling.core import numbers as fmt
from scaling.core.errors import UserError, printable
from scaling.core.grid import RUN_KEYS, Cell
from scaling.core.records.run import RUN
from scaling.report import cells, overview, page
from scaling.report.views import QUESTIONS
from scaling.tables import schema, timing
from scaling.terminal import state

say = logging.getLogger("snakemake.logging").info
RESTS = 100
"""After a look at the tables the next is as many times later as it took: 1 % of the time."""
KILLED = "ended without a word, as by SIGKILL; before: "
AT_THE_END = f"""read -r line
grep -q '<meta http-equiv="refresh"' "$0" && \\
  sed -i -e '/<meta http-equiv="refresh"/d' -e 's/class="chip">/class="chip bad">{KILLED}/' "$0"
"""
"""What a shell does with the page once its own input ends: a page still `running` says so."""


class Progress(logging.Handler):
    """Follows one run of Snakemake, with records below `records` and the report in `results`."""

    def __init__(self, workflow: Any, config: dict[str, Any], records: str, results: str) -> None:
        super().__init__()
        self._workflow, self._config = workflow, config
        self._records, self._results = Path(records), Path(results)
        self._jobs: dict[int, Any] = {}
        self._places: dict[int, list[Path]] = {}
        """The records of each job that measures, from their folder."""
        self._known: state.Known
        self._start = time.monotonic()
        self._begun: dict[int, float] = {}
        self._done: list[int] = []
        self._page: StudyPage | None = None
        self._here = True

    def begin(self, record: logging.LogRecord) -> bool:
        """As a filter of the log, look at the jobs before Snakemake's handlers list them."""
        if getattr(getattr(record, "event", None), "name", "") == "RUN_INFO":
            self.emit(record)
        return True

    def emit(self, record: Any) -> None:
        """Handle an event of Snakemake; an exception in here never stops a study."""
        event = getattr(getattr(record, "event", None), "name", str(record.msg))
        try:
            if event == "RUN_INFO" and not self._jobs:
                self._begin()
            elif event == "JOB_INFO":
                self._started(record.jobid, begun=self._here)
            elif hasattr(record, "begun"):  # Slurm's executor says so.
                self._started(record.begun, begun=True)
            elif event == "JOB_ERROR":
                self._ended(record.jobid)
            elif event == "JOB_FINISHED":
                self._finished(record.job_id)
                self._ended(record.job_id)
            elif event.startswith("This was a dry-run"):
                say(printable(self._plan()))
            elif event.startswith("Nothing to be done"):
                self._link()
        except Exception:
            self.handleError(record)

    def _begin(self) -> None:
        """Store the jobs of this run; end it with one sentence if they cannot run here."""
        workflow, dag, config = self._workflow, self._workflow.dag, self._config
        self._jobs = {dag.jobid(job): job for job in dag.needrun_jobs()}
        for number, job in self._jobs.items():
            paths = [Path(path) for path in job.output if Path(path).is_relative_to(self._records)]
            places = [path.relative_to(self._records) for path in paths if path.suffix == ".json"]
            if places and places[0].parts[0] in stored.RECORDS and job.rule.name != "train_single":
                self._places[number] = places
        wanted = max(int(job.resources.get("gpu", 0)) for job in self._jobs.values())
        granted = workflow.global_resources.get("gpu")
        # A dry run is local even if jobs would run elsewhere; only its threads show that.
        threads = workflow.dryrun and workflow.execution_settings.use_threads
        here = self._here = workflow.local_exec and not threads
        if wanted and here:
            try:
                devices.check(config, wanted, granted.value if granted else None)
            except UserError as error:
                sys.exit(f"error: {error}")
        if not self._places:
            return
        self._known = state.Known(config, self._records)
        if (render := self._render()) and not (workflow.dryrun or workflow.touch):
            self._page = StudyPage(config["study"], self._results, dag.jobs)
            # It will be there, which is not worth Snakemake's warning.
            dag.reason(render).missing_output.discard(render.output.page)

    def _render(self) -> Any:
        """Return the job that makes the report, None if there is none."""
        return next((job for job in self._jobs.values() if job.rule.name == "report_render"), None)

    def _started(self, number: int, *, begun: bool) -> None:
        """Write the page before a job starts; only its state while something is measured here."""
        at_rest = not (self._here and self._begun)
        if begun and number in self._places:
            self._begun[number] = time.time()
        self._write(running=True, at_rest=at_rest)

    def _ended(self, number: int) -> None:
        """Forget a job; on a cluster the next one has begun long before, and the page is due."""
        self._begun.pop(number, None)
        if not self._here:
            self._write(running=True)

    def _write(self, *, running: bool, at_rest: bool = True) -> None:
        if self._page:
            begun = self._begun if running else {}
            places = {place: since for job, since in begun.items() for place in self._places[job]}
            told = state.of(self._config, places, self._known, running)
            self._page.write(told, running=running, at_rest=at_rest)

    def stopped(self) -> None:
        """Write the page of a study whose run ends without its report."""
        try:
            self._write(running=False)
        except Exception as error:
            say(f"The page of the study could not be written: {error}")

    def _plan(self) -> str:
        """Return how many measurements are due, and how long they take."""
        names = [job.rule.name for job in self._jobs.values()]
        places = [place for own in self._places.values() for place in own]
        others = fmt.plural(len(names) - len(self._places), "job")
        others += " for tables, figures and report"
        if not places:
            return f"This would run {others}."
        gpus = sorted({int(place.parts[3][5:]) for place in places if place.name == "run.json"})
        trainings = names.count("train_run") + names.count("train_command")
        on_cpu = self._here and not environment.visible_gpus()
        device = "CPU processes" if on_cpu or self._config["device"] == "cpu" else "GPUs"
        guessed = [self._known.seconds(place) for place in places].count(None)
        known = f"{len(places) - guessed} as measured here, {guessed} guessed at"
        known += f" {state.GUESSED_SECONDS} s, the demo's on two cores"
        said = [
            f"{fmt.plural(trainings, 'training')} on {', '.join(map(str, gpus))} {device}",
            fmt.plural(len(places) - trainings, "other measurement"),
            others,
            f"about {state.duration(self._known.total(places))} one after another ({known})",
        ][not gpus :]
        return "This would run " + ";\n  ".join(said) + "."

    def _finished(self, number: int) -> None:
        """Print one line on a finished measurement, and the remaining time."""
        if self._jobs.get(number) == self._render():
            self._page = None
        if number not in self._places:
            return
        self._done.append(number)
        for place in self._places[number]:
            self._known.add(place)
        # In a terminal, profiles/local shows progress bars.
        if sys.stderr.isatty() and "rich" in self._workflow.output_settings.log_handler_settings:
            return
        done = [place for one in self._done for place in self._places[one]]
        wanted = [place for places in self._places.values() for place in places]
        # What is between measurements, or at the same time, goes on so.
        pace = (time.monotonic() - self._start) / (self._known.total(done) or 1)
        left = pace * self._known.total([one for one in wanted if one not in done])
        of = len(self._places)
        left_said = f", about {state.duration(left)} left" if len(self._done) < of else ""
        say(f"[{len(self._done)} of {of}] {self._outcome(number)}{left_said}")

    def _outcome(self, number: int) -> str:
        """Return the result of a measurement in a few words."""
        job, (place, *_) = self._jobs[number], self._places[number]
        if place.name != "run.json":
            return " ".join([job.rule.name, *map(" ".join, job.wildcards.items())])
        record = RUN.read(self._records / place)
        seconds = timing.epochs([record], "measured")["seconds"]
        told = f"{seconds.median():.3g} s an epoch" if len(seconds) else record["status"]
        return f"{Cell(**{key: record['cell'][key] for key in RUN_KEYS})}: {told}"

    def end(self, log: Path) -> None:
        """Print the headline from the log of the report's job, and the report's path, if any."""
        if self._render():
            say(log.read_text(encoding="utf-8").rstrip())
            self._link()

    def _link(self) -> None:
        report = (self._results / "report.html").resolve()
        if report.exists():
            say(f"The report is {report.as_uri()}")


class StudyPage:
    """Writes the page in `results` of the study called `study`, whose `jobs` make its report."""

    def __init__(self, study: str, results: Path, jobs: Iterable[Any]) -> None:
        self._study, self._results = study, results
        self._jobs = {job.rule.name: job for job in jobs}
        self._told: dict[str, Any] = {"cards": [], "answers": [], "at": "", "missing": ""}
        self._due = 0.0
        # Its input ends with this process, however that ends.
        command = ["sh", "-c", AT_THE_END, str((results / "report.html").resolve())]
        self._watch = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def write(self, told: dict[str, Any], *, running: bool, at_rest: bool) -> None:
        """Write the page; tables are looked at again if that is due, and nothing is disturbed."""
        if at_rest and told["measured"] and (begin := time.monotonic()) >= self._due:
            self._told |= self._tell()
            self._due = begin + RESTS * (time.monotonic() - begin)
        table = told["grid"].to_html(index=False, border=0) if len(told["grid"]) else ""
        html = page.render(
            page.REPORT / "running.html.j2",
            study=self._study,
            running=running,
            written=f"{datetime.now():%a %d %b %Y, %H:%M:%S}",
            **told | {"grid": page.Markup(table)} | self._told,
        )
        files.write_text(self._results / "report.html", html)

    def _tell(self) -> dict[str, Any]:
        """Return the cards and answers that the commands of the study's jobs give by now."""
        try:
            with TemporaryDirectory() as name:
                for rule in ("tables_scaling", "tables_experiments", "claims_evaluate"):
                    if rule in self._jobs:
                        self._run(self._jobs[rule], Path(name))
                made = [kind.path(Path(name), self._study) for kind in schema.TABLES.values()]
                manifest = Path(self._jobs["report_render"].input.manifest)
                there = [path for path in made if path.exists()]
                study = schema.read_study(self._study, there, None, manifest)
                answers = claim.read(Path(name, "claims.json")).answers
            return {
                "cards": overview.cards(study, cells.of_study(study)),
                "answers": [(one, answers[one.name]) for one in QUESTIONS if answers.get(one.name)],
                "at": f"{datetime.now():%H:%M}",
                "missing": "",
            }
        except (Exception, SystemExit) as error:
            return {"missing": f"{type(error).__name__}: {error}"}

    def _run(self, job: Any, folder: Path) -> None:
        """Run the command of a job in this process, from the inputs there are, to `folder`."""
        tables, placed = self._results / "tables", []
        _, script, *words = shlex.split(job.shellcmd)
        for word in words[: words.index(">")]:
            path = Path(word)
            if path.is_relative_to(tables):
                path = folder / path.relative_to(tables)
            elif word in job.output:
                path = folder / path.name
            if word not in job.input or path.exists():
                placed.append(str(path) if folder in [path, *path.parents] else word)
        if "--partial" in placed:
            placed[placed.index("--partial") + 1] = "True"
        with redirect_stderr(StringIO()):
            importlib.import_module(Path(script).stem).main(placed)
