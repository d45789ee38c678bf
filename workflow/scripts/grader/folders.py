"""The folders of published studies, as the rules that read them need their files."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from grader.study import TIMINGS, PublishedStudy, by_name, folders
from scaling.core.errors import refused

SOURCES = [TIMINGS, "batch_sweep.csv"]
"""The files of a study that hold its times and the figures it prints."""


class Folders:
    """The published studies below the folder `studies`; none may be called `reserved`."""

    def __init__(self, studies: Path, reserved: str) -> None:
        self._reserved = reserved
        self.all = [str(path) for path in folders(studies)]
        """Their folders."""

    @cached_property
    def _by_name(self) -> dict[str, tuple[Path, PublishedStudy]]:
        with refused():
            return by_name(map(Path, self.all), reserved=self._reserved)

    def files(self) -> list[str]:
        """Every file of theirs."""
        return [str(path) for folder in self.all for path in sorted(Path(folder).glob("*.*"))]

    def of(self, wildcards: Mapping[str, str]) -> Path:
        """The folder of the study in a job's path."""
        return self._by_name[wildcards["study"]][0]

    def sources(self, wildcards: Mapping[str, str]) -> list[str]:
        """The files with the times and printed figures of the study in a job's path."""
        paths = [self.of(wildcards) / name for name in SOURCES]
        return [str(path) for path in paths if path.exists()]

    def tables(self, results: str, *names: str) -> Callable[[Mapping[str, str]], list[str]]:
        """An input function: these tables of all studies, below the folder `results`."""
        return lambda wildcards: [
            f"{results}/tables/{study}/{name}.csv" for study in self._by_name for name in names
        ]
