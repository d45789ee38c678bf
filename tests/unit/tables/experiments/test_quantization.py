"""What is no record of a quantized variant."""

import pytest

import tables_experiments
from scaling.core.errors import UserError
from scaling.core.records.machine import CHECK


def test_a_file_of_another_script_is_refused(tmp_path):
    path = tmp_path / "stranger.json"
    CHECK.write(path, {"check": "warn", "hosts": [], "gpus": [], "findings": [], "environment": {}})
    with pytest.raises(UserError, match=r"stranger\.json is no sound record of quantize_ev"):
        tables_experiments.main(["--variants", str(path), "--tables", str(tmp_path)])
