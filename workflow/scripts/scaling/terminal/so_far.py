"""The page of a study while it runs: its state, and cards and answers from what exists."""

import importlib
import shlex
import subprocess
import time
from collections.abc import Iterable
from contextlib import redirect_stderr
from datetime import datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scaling.claims import claim
from scaling.core import files
from scaling.report import cells, overview, page
from scaling.report.views import QUESTIONS
from scaling.tables import schema

RESTS = 100
"""After a look at the tables the next is as many times later as it took: 1 % of the time."""
KILLED = "ended without a word, as by SIGKILL; before: "
AT_THE_END = f"""read -r line
grep -q '<meta http-equiv="refresh"' "$0" && \\
  sed -i -e '/<meta http-equiv="refresh"/d' -e 's/class="chip">/class="chip bad">{KILLED}/' "$0"
"""
"""What a shell does with the page once its own input ends: a page still `running` says so."""


class SoFar:
    """Writes the page in `results` of the study called `study`, whose `jobs` make its report."""

    def __init__(self, study: str, results: Path, jobs: Iterable[Any]) -> None:
        self._study, self._results = study, results
        self._jobs = {job.rule.name: job for job in jobs}
        self._told: dict[str, Any] = {"cards": [], "answers": [], "at": "", "missing": ""}
        self._due = 0.0
        # Its input ends with this process, however that ends.
        command = ["sh", "-c", AT_THE_END, str((results / "report.html").resolve())]
        self._watch = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def write(self, state: dict[str, Any], *, running: bool, at_rest: bool) -> None:
        """Write the page; tables are looked at again if that is due, and nothing is disturbed."""
        if at_rest and state["measured"] and (begin := time.monotonic()) >= self._due:
            self._told |= self._tell()
            self._due = begin + RESTS * (time.monotonic() - begin)
        table = state["grid"].to_html(index=False, border=0) if len(state["grid"]) else ""
        html = page.render(
            page.REPORT / "running.html.j2",
            study=self._study,
            running=running,
            written=f"{datetime.now():%a %d %b %Y, %H:%M:%S}",
            **state | {"grid": page.Markup(table)} | self._told,
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
            placed[placed.index("--partial") + 1] = "yes"
        with redirect_stderr(StringIO()):
            importlib.import_module(Path(script).stem).main(placed)
