"""`make study CONFIG=mine.yaml` on GPUs, as the Makefile starts it. Skipped without."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml

ROOT = Path(__file__).parents[2]
GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS == 0, reason="needs a GPU")
LEFT_OUT = (".git", ".venv*", ".snakemake", "results", "resources", "logs", "studies", "docs")
MINE = {
    "study": "mine",
    "grid": {"gpus": [1, 2][:GPUS], "batch_sizes": [512]},
    "dataset": {"source": "synthetic", "train_images": 8192, "test_images": 512},
    "training": {"warmup_seconds": 0.0, "measured_seconds": 0.0},
    "peaks": {"matrix_sizes": [4096], "sustained_seconds": 0.0},
    "interconnect": {"message_bytes": [4096, 1048576, 67108864]},
}
FILES = ["config/scaling.yaml", "mine.yaml"]
# The bars in a terminal are a package of their own.
PROFILE = ["--profile", "profiles/local"] if find_spec("snakemake_logger_plugin_rich") else []
REFRESH = '<meta http-equiv="refresh"'


def test_a_study_of_four_lines_has_its_page_from_the_first_job_on_and_a_trace(tmp_path):
    study = tmp_path / "study"
    shutil.copytree(ROOT, study, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (study / "mine.yaml").write_text(yaml.safe_dump(MINE))
    path = f"workflow/scripts:{os.environ.get('PYTHONPATH', '')}"
    variables = {**os.environ, "PYTHONPATH": path}
    checked = [sys.executable, "-m", "scaling.config.stored", *FILES]
    subprocess.run(checked, cwd=study, env=variables, check=True)
    snakemake = [sys.executable, "-m", "snakemake", *PROFILE, "--cores", "all"]
    page, seen = study / "results/report.html", {}
    with (
        (tmp_path / "said.txt").open("w") as said,
        subprocess.Popen(
            [*snakemake, "--configfile", *FILES],
            cwd=study,
            env=variables,
            stdout=said,
            stderr=subprocess.STDOUT,
        ) as run,
    ):
        while run.poll() is None:
            if page.exists() and REFRESH in (text := page.read_text()):
                head = re.search(r'class="chip[^>]*>([^<;]*)', text)[1]
                seen.setdefault(head, text)
            time.sleep(0.2)
    assert run.returncode == 0, (tmp_path / "said.txt").read_text()
    first, *_, last = seen
    count = len(MINE["grid"]["gpus"])
    assert first == f"running, 0 of {count}: {count} waiting"
    assert last.startswith(f"running, {count} of {count}") and "<h2>Fastest</h2>" in seen[last]
    report = page.read_text()
    assert REFRESH not in report and "Q1" in report
    traces = sorted(study.glob("results/runs/**/trace.json.gz"))
    assert len(traces) == count and "trace.json.gz" in report
    for gpus, path in enumerate(traces, 1):
        assert path.stat().st_size <= 1_000_000
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        kernels = {event["pid"] for event in events if event.get("cat") == "kernel"}
        assert len(kernels) == gpus
