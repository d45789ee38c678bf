"""A lease on GPUs: two jobs on one machine never get the same one."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from scaling.core.environment import gpu_uuid
from scaling.core.errors import UserError

LOCKS = Path(tempfile.gettempdir()) / f"scaling-study-gpus-{os.getuid()}"
POLL_SECONDS = 1.0


@contextmanager
def lease(count: int, candidates: list[str], locks: Path = LOCKS) -> Iterator[list[str]]:
    """Yield `count` of the `candidates` (as CUDA_VISIBLE_DEVICES names them), held until the end.

    All or nothing, in order; while too few are free it waits for other jobs to end. A lease ends
    with its process, however that ends. Raises UserError when there are too few candidates.
    """
    if count > len(candidates):
        raise UserError(
            f"{count} GPUs are asked for but this job may use {len(candidates)} "
            f"({', '.join(candidates) or 'none'}): ask the scheduler for {count}, or for fewer GPUs"
        )
    locks.mkdir(parents=True, exist_ok=True)
    while True:
        with ExitStack() as held:
            names: list[str] = []
            for candidate in candidates:
                if len(names) == count:
                    break
                try:
                    held.enter_context(FileLock(locks / f"{gpu_uuid(candidate)}.lock", timeout=0))
                except Timeout:
                    continue
                names.append(candidate)
            if len(names) == count:
                yield names
                return
        time.sleep(POLL_SECONDS)
