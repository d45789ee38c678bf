"""Snapshots of stored studies: tables, claims, names of figures, and texts of pages.

`python tests/snapshots.py` compares them with tests/snapshots/; `--update` rewrites them.
"""

import argparse
import contextlib
import importlib
import io
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from examples.page import Page  # noqa: E402
from small_study import forked, link_digests  # noqa: E402

SNAPSHOTS = ROOT / "tests/snapshots"
STORED = sorted(path.parent.name for path in ROOT.glob("studies/*/config.yaml"))
OWN = sorted(path.name for path in SNAPSHOTS.glob("studies/*"))
STUDIES = [*OWN, *STORED, *(path.name for path in SNAPSHOTS.glob("expected/published"))]
"""All stored studies, and two beside the snapshots: `cpu` ran config/demo.yaml with more options,
and `command` ran a training script that uses the client."""

_COMMAND = re.compile(
    r"(?:/workflow/scripts/(?=\w+\.py)|python -m )([\w.]+?)(?:\.py)? (.*?)(?: > \S+ 2>&1)?$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@contextlib.contextmanager
def project_copy() -> Iterator[Path]:
    """Change into a copy of the project without results."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("Snakefile", "rules", "workflow", "config", "report", "studies", "profiles"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, folder / part)
        shutil.copytree(SNAPSHOTS / "studies", folder / "studies", dirs_exist_ok=True)
        link_digests(folder)
        with contextlib.chdir(folder):
            yield folder


def make(study: str, drawn: bool = False) -> Path:
    """Run the commands of a study's replay in this process; return the folder of results.

    Figures are empty unless `drawn`, because drawing takes longer than all other steps.
    """
    if study == "published":
        audit = importlib.import_module("grader.audit_studies")
        output = contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO()))
        with contextlib.suppress(audit.UserError), output:
            audit.main(["studies/published", "--output", "results/published.html"])
        return Path("results")
    planned = forked(["--cores", "1", "-n", "-p", "--config", f"replay={study}"], Path.cwd()).stdout
    commands = _COMMAND.findall(planned)
    assert commands, planned
    undrawn = mock.patch("matplotlib.figure.Figure.savefig", blank)
    with contextlib.nullcontext() if drawn else undrawn, contextlib.redirect_stdout(io.StringIO()):
        for script, arguments in commands:
            importlib.import_module(script).main(shlex.split(arguments))
    return Path(f"results/replay/{study}")


def blank(_: object, target: io.StringIO, **options: object) -> None:
    """Write an empty figure."""
    target.write("<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>")


def texts(results: Path) -> dict[str, str]:
    """Return tables, claims, answers, names of figures and texts of pages, by path in `results`."""
    figures = sorted(str(path.relative_to(results)) for path in results.glob("figures/*/*.svg"))
    found = {
        str(path.relative_to(results)): _text(path)
        for path in [*results.glob("answers.md"), *sorted((results / "tables").rglob("*.*"))]
    }
    for path in results.glob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        found |= {f"{path.stem}.txt": of_tables(page), "prose.txt": of_prose(page)}
    return found | {"figures.txt": "".join(f"{figure}\n" for figure in figures)}


def of_tables(page: Page) -> str:
    """Return the texts of a page's tables."""
    lines = []
    for title, rows in page.tables.items():
        lines += [f"# {title}", *(" | ".join(" ".join(c.split()) for c in row) for row in rows)]
    return "\n".join(lines) + "\n"


def of_prose(page: Page) -> str:
    """Return a page's text outside of tables."""
    lines = (" ".join(line.split()) for line in page.prose.splitlines())
    return "\n".join(filter(None, lines)) + "\n"


def _text(path: Path) -> str:
    """Return a file's text. Of tables above 1,000 rows, return the header and every 25th row."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    is_long = path.suffix == ".csv" and len(lines) > 1001
    return "".join([lines[0], *lines[1::25]] if is_long else lines)


def differences(before: str, now: str) -> list[str]:
    """Return removed (-) and added (+) lines. Numbers that differ by rounding are equal."""
    if before == now:
        return []
    old, new = (
        _NUMBER.sub(lambda number: f"{round(float(number[0]), 15):.9g}", text).splitlines()
        for text in (before, now)
    )
    return [line for line in unified_diff(old, new, n=0, lineterm="") if line[:2] != "@@"][2:]


def compare(study: str, found: dict[str, str]) -> list[str]:
    """Return the differences of `found` from the snapshot of `study`, one per line."""
    folder = SNAPSHOTS / "expected" / study
    there = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.*"))}
    lines = [f"{study}/{name} is gone" for name in there if name not in found]
    lines += [f"{study}/{name} is new" for name in found if name not in there]
    for name in sorted(set(there) & set(found)):
        changes = differences(there[name].read_text(encoding="utf-8"), found[name])
        lines += [f"{study}/{name}: {change}" for change in changes]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--update", action="store_true", help="write the snapshots anew")
    arguments = parser.parse_args()
    changed = []
    with project_copy():
        for study in arguments.studies:
            found, kept = texts(make(study)), SNAPSHOTS / "expected" / study
            shutil.rmtree("results")
            if not arguments.update:
                changed += compare(study, found)
                continue
            shutil.rmtree(kept, ignore_errors=True)
            for name, text in found.items():
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                (kept / name).write_text(text, encoding="utf-8")
    print("\n".join(changed) or "as the snapshots")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
