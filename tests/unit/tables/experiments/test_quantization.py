"""Records of quantized variants that belong in no table together."""

from pathlib import Path

import pytest

import tables_quantization
from examples.quantized_digits import LAST, document
from scaling.core import files
from scaling.core.errors import UserError


def test_the_tables_refuse_another_dataset_or_network_and_other_files(
    quantized_digits: Path, tmp_path: Path
) -> None:
    own = document(quantized_digits)
    other = own | {"seed": 7, "dataset": {"source": "cifar10", "checksum": "0"}}
    files.write_json(tmp_path / "other.json", other)
    network = own | {"variant": "new", "float32": {"accuracy_percent": 12.0}}
    files.write_json(tmp_path / "network.json", network)
    files.write_json(tmp_path / "stranger.json", {"seed": 0})
    for second, complaint in (
        (tmp_path / "other.json", "made on different datasets"),
        (tmp_path / "network.json", "of seed 0 are of different networks, .* 12.00 %, "),
        (tmp_path / "stranger.json", "was not written by quantize_evaluate.py"),
    ):
        with pytest.raises(UserError, match=complaint):
            records = str(quantized_digits / f"{LAST}.json"), str(second)
            tables_quantization.main(["--records", *records, "--output", str(tmp_path)])
