"""Record docs/terminal.svg: a small study on CPU cores, from its configuration to its report.

It runs in a copy of what is committed, and takes minutes. All lines are real; of paths only the
copy's folder is shortened.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
CONFIG = """\
parts: [scaling]
grid: {batch_sizes: [32, 128]}
machine: {check: warn}
"""
COMMANDS = ["cat mine.yaml", "make study CONFIG=mine.yaml BASE=config/demo.yaml"]
WIDTH = 104
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A reference to a font elsewhere: the picture loads nothing."""


def said(command: str, folder: Path) -> str:
    """Return what `command` prints in `folder`, in this environment; exit if it fails."""
    variables = {**os.environ, "VENV": str(ROOT / ".venv"), "COLUMNS": str(WIDTH)}
    run = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if run.returncode:
        sys.exit(f"{command} failed:\n{run.stdout}")
    return run.stdout.replace(str(folder), "…").rstrip()


def record() -> str:
    """Return the picture of the commands and what they say."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run("git archive HEAD | tar -x -C " + name, cwd=ROOT, shell=True, check=True)
        (folder / "mine.yaml").write_text(CONFIG, encoding="utf-8")
        for command in COMMANDS:
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text(said(command, folder)))
    return FONT.sub("", console.export_svg(title="a small study", unique_id="terminal"))


if __name__ == "__main__":
    (ROOT / "docs/terminal.svg").write_text(record(), encoding="utf-8")
