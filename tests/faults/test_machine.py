"""A disk without room for a record, and two studies on one machine."""

import json
import resource
import subprocess
from datetime import datetime

CELL = {"gpus": 2, "batch_size": 10}


def limited(size):
    """Let no file of the next process grow beyond `size` bytes; writing more fails as if full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_record_that_does_not_fit_is_one_sentence_and_leaves_the_one_before(new_study):
    study = new_study()
    study.finish("resources/dataset/synthetic/manifest.json")
    command = ["python", "workflow/scripts/train_run.py", "--device", "cpu", "--gpus", "1"]
    # A loader in a process of its own hands its images over in files.
    command += ["--recipe-options", '{"loader_workers": 0}']
    command += ["--batch-size", "10", "--model-width", "1", "--output", "results/run.json"]
    images = study.folder / "resources/dataset/synthetic/images.npz"
    command += ["--dataset", images, "--manifest", images.with_name("manifest.json")]
    subprocess.run(command, cwd=study.folder, check=True, capture_output=True)
    record = study.folder / "results/run.json"
    before = record.read_bytes()
    too_little = limited(len(before) - 100)
    failed = subprocess.run(
        command, cwd=study.folder, capture_output=True, text=True, preexec_fn=too_little
    )
    assert failed.returncode == 1
    assert failed.stderr.endswith("error: cannot write results/run.json: File too large\n")
    assert record.read_bytes() == before
    assert [path.name for path in record.parent.iterdir()] == ["run.json"]


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
    logs = [path.read_text() for study in studies for path in study.folder.glob("logs/**/*.log")]
    assert sum("waits for 1 of 1 CPUs, for at most" in log for log in logs) == 1
