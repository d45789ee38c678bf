"""Tell the scaling study of each epoch of your own training. One file, no dependencies: copy it.

    from scaling_client import epoch

    for number in range(1, epochs + 1):
        train()
        epoch(number, samples=len(images), loss=loss)

It prints a line of JSON, on rank 0 alone; without the study nothing else happens.
"""

import json
import os
import sys
import time

_before = time.monotonic()


def epoch(number, *, seconds=None, samples=None, loss=None, test_accuracy=None):
    """Print that epoch `number` (from 0 or 1, in order) has ended.

    `seconds` is how long it took; by default since the last call, or the import for the first. A
    GPU's work is waited for. `samples` were trained on, by all ranks together; `loss` is their mean
    training loss, `test_accuracy` is a share from 0 to 1. What is left out is not known.
    """
    global _before
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    now = time.monotonic()
    said = {"epoch": number, "seconds": now - _before if seconds is None else seconds}
    said.update(samples=samples, loss=loss, test_accuracy=test_accuracy)
    if os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0":
        known = {name: float(value) for name, value in said.items() if value is not None}
        print(json.dumps({**known, "epoch": number}), flush=True)
    _before = time.monotonic()
