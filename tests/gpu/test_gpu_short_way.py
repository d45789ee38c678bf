"""`make study CONFIG=mine.yaml` on GPUs."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
import yaml

ROOT = Path(__file__).parents[2]
GPUS = torch.cuda.device_count()
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


def test_study_of_four_lines_has_page_and_traces(tmp_path):
    study = tmp_path / "study"
    shutil.copytree(ROOT, study, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (study / "mine.yaml").write_text(yaml.safe_dump(MINE))
    path = f"workflow/scripts:{os.environ.get('PYTHONPATH', '')}"
    variables = {**os.environ, "PYTHONPATH": path}
    checked = [sys.executable, "-m", "scaling.config.stored", *FILES]
    subprocess.run(checked, cwd=study, env=variables, check=True)
    snakemake = [sys.executable, "-m", "snakemake", *PROFILE, "--cores", "all"]
    command = [*snakemake, "--configfile", *FILES]
    run = subprocess.run(command, cwd=study, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    report = (study / "results/report.html").read_text()
    assert "Q1" in report
    traces = sorted(study.glob("results/runs/**/trace.json.gz"))
    # On two GPUs also the pair with an equal global batch.
    cells = [(1, 512)] + [(2, 256), (2, 512)] * (GPUS > 1)
    asked = [f"gpus~{gpus}/batch_size~{batch}/" for gpus, batch in cells]
    found = {name: path for path in traces for name in asked if name in str(path)}
    assert len(traces) == len(found) == len(cells) and "trace.json.gz" in report
    for (gpus, _), name in zip(cells, asked, strict=True):
        path = found[name]
        assert path.stat().st_size <= 1_000_000
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        kernels = {event["pid"] for event in events if event.get("cat") == "kernel"}
        assert len(kernels) == gpus
