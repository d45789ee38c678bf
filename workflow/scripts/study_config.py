"""Write the complete configuration of a study as YAML."""

from pathlib import Path
from typing import Any

import yaml

from scaling.core import command_line, files


@command_line.script
def main(config: dict[str, Any], output: Path) -> None:
    files.write_text(output, yaml.safe_dump(config, sort_keys=False))
