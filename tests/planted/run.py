"""Plant mistakes in a clone of the project, one at a time, and report which ones tests notice.

`python tests/planted/run.py [ID …]` plants the named faults of faults.yaml, or all faults, in a
clone of the last commit.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).with_name("faults.yaml")
LONGEST_SECONDS = 600
"""Tests that take longer have noticed the mistake, because they hang."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def first_failure(tests: list[str], copy: Path) -> str:
    """Return the first of `tests` that fails in `copy`, or an empty text if all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    limit = ["timeout", "--kill-after", "5", str(LONGEST_SECONDS)]
    done = subprocess.run([*limit, *command], cwd=copy, capture_output=True, text=True)
    if done.returncode in (0, 124, 137):
        return f"more than {LONGEST_SECONDS} s" * (done.returncode > 0)
    if (failed := FAILED.search(done.stdout)) is None:
        sys.exit(f"{' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return failed[1]


def outcome(fault: dict[str, Any], copy: Path) -> tuple[str, str]:
    """Plant a fault, run its tests, remove it. Return the result and the test that noticed it."""
    path = copy / fault["file"]
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(fault["old"]) != 1:
        return "no place any more", fault["file"]
    path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    failed = first_failure(fault["tests"], copy)
    path.write_text(text, encoding="utf-8")
    return ("noticed" if failed else "not noticed"), failed


def main(ids: list[str]) -> None:
    faults = {one["id"]: one for one in yaml.safe_load(FAULTS.read_text("utf-8"))["faults"]}
    if unknown := set(ids) - faults.keys():
        sys.exit(f"there is no fault {', '.join(sorted(unknown))}")
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        for name in ids or faults:
            result, by = outcome(faults[name], Path(folder))
            totals[result] += 1
            print(f"{name:<26} {result:<17} {by}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in totals.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
