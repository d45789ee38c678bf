"""Write down the complete configuration that a study is made with, as YAML."""

from pathlib import Path
from typing import Any

import yaml

from scaling.core import command_line, files
from scaling.core.errors import run_script


@command_line.script
def main(config: dict[str, Any], output: Path) -> None:
    """Write the configuration."""
    files.write_text(output, yaml.safe_dump(config, sort_keys=False))


if __name__ == "__main__":
    run_script(main)
