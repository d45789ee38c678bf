"""Fail where study B is slower than study A by more than is allowed, for continuous integration.

Each is the name of a study in studies/, or a results folder; `folder:recipe` is one recipe of it,
so that two recipes of one study are compared by pairs of runs. Exits with 0 where nothing is
slower, 1 for an error, 2 where B is slower by more than `fail` and by more than noise, and 3 where
that cannot be judged: other machines, other work, one run.
"""

import sys
from pathlib import Path

from scaling.config import stored
from scaling.core import command_line, files, grid
from scaling.tables import gate
from scaling.tables.timing import Run, read_runs


def runs_of(name: str) -> tuple[Path, list[Run], str]:
    """Return the folder of a study, its runs, and the recipe to compare ("" for all)."""
    place, _, recipe = name.partition(":")
    there = (Path(place) / stored.CONFIG).is_file()
    folder = Path(place) if there else stored.find(Path("studies"), place)
    runs = read_runs(grid.of(stored.read(folder)), folder / "runs", partial=True)
    return folder, [run for run in runs if recipe in ("", run[0].recipe)], recipe


@command_line.script
def main(a: str, b: str, fail: str = "2%", output: Path = Path("results/compare")) -> None:
    """Print a line of Markdown for each configuration, and write gate.md and gate.json."""
    limit = gate.limit_of(fail)
    (one, runs, recipe), (other, other_runs, other_recipe) = runs_of(a), runs_of(b)
    both = bool(recipe and other_recipe)
    found = gate.judge(runs, other_runs, paired=one == other, renamed=both, limit=limit)
    status, text = gate.status(found), gate.markdown(found)
    files.write_text(output / "gate.md", text)
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    files.write_json(
        output / "gate.json", {"a": a, "b": b, "limit": limit, "status": status, "rows": rows}
    )
    print(text, end="")
    sys.exit(status)
