"""Two studies on one machine: timed jobs wait for one another, and nothing is shared."""

import json
from datetime import datetime

CELL = {"gpus": 2, "batch_size": 10}
LOG = "train_run/recipe~plain/strategy~ddp/gpus~2/batch_size~10/seed~0.log"


def test_two_studies_at_once_are_timed_one_after_another(new_study):
    studies = [new_study(grid__gpus=[1, 2]) for _ in range(2)]
    for study in studies:
        study.finish("resources/dataset/synthetic/manifest.json")
    for study in studies:
        study.start(study.target(**CELL))
    for study in studies:
        assert study.process.wait() == 0, study.output()
    spans = []
    for study in studies:
        record = json.loads(study.record(**CELL).read_text())
        ended = datetime.fromisoformat(record["environment"]["ended"]).timestamp()
        spans.append((ended - record["run_seconds"], ended))
    (_, first_ends), (second_starts, _) = sorted(spans)
    # The record is written a moment after its processes have ended.
    assert second_starts >= first_ends - 1
    assert sum("waits for 1 of 1 CPUs, for at most" in study.logs() for study in studies) == 1
