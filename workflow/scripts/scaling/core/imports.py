"""Which of our modules a script imports, directly or not."""

import os
from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path


@cache
def code_of(script: Path) -> list[str]:
    """Paths, from here, of the script and of every module of ours that it imports, sorted.

    Ours are those beside the script; everything else (torch, the standard library) is left out,
    because the search path is the script's folder alone. Imports inside functions count.
    """
    finder = ModuleFinder(path=[str(script.parent)])
    finder.run_script(str(script))
    files = (getattr(module, "__file__", None) for module in finder.modules.values())
    return sorted({os.path.relpath(file) for file in files if file})
