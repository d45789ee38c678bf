"""Print, as JSON, by how many percent the client's `step()` prolongs a training step on a GPU.

`PYTHONPATH=workflow/client python tests/bench/step_cost.py` trains 200 steps with `step()` and 200
without, 12 times in turn. The 95 % interval of the mean is Student's.
"""

import contextlib
import io
import json
import statistics
import time

import scaling_client as client
import torch

STEPS, PAIRS, T = 200, 12, 2.201
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(12)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(2048, 2048, device="cuda")


def seconds(with_step: bool) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(STEPS):
        with client.step() if with_step else contextlib.nullcontext():
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
    with contextlib.redirect_stdout(io.StringIO()):
        client.epoch(0)  # Waits for the GPU.
    return time.perf_counter() - started


seconds(True), seconds(False)
percent = []
for pair in range(PAIRS):
    took = {one: seconds(one) for one in ((False, True) if pair % 2 else (True, False))}
    percent.append(100 * (took[True] / took[False] - 1))
half = T * statistics.stdev(percent) / PAIRS**0.5
found = {"step_ms": 1e3 * took[False] / STEPS, "percent": statistics.mean(percent), "half": half}
print(json.dumps(found))
