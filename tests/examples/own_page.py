"""What docs/own_trainer.md shows: the page, and its files by name."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/own_trainer.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\w+\n# (train\.py|mine\.yaml)\n(.*?)```", PAGE, re.DOTALL))
