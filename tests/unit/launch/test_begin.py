"""What precedes the first job of a study."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from scaling.config.config import asked
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch import begin

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config():
    return asked(yaml.safe_load((ROOT / "config/config.yaml").read_text()))


def test_jobs_keep_compiled_code_in_the_studys_folder_and_not_in_tmp(config, monkeypatch, tmp_path):
    for name in ("TORCHINDUCTOR_CACHE_DIR", SNAKEMAKE_VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    begin.accept(config, None)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == f"{tmp_path}/resources/compiled"


def test_a_folder_that_cannot_be_written_is_refused(config, monkeypatch):
    main = SimpleNamespace(is_main_process=True)
    monkeypatch.setattr(begin.os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match="cannot be written: start in a folder of yours"):
        begin.begin(main, config, [], manifest=None, records="results", needed=[])
