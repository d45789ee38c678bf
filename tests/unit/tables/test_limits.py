"""What a machine can do at best: measured on this CPU, and worked out from made-up repeats."""

import math
from pathlib import Path

import pandas as pd
import pytest

import peaks_measure
from scaling.core import files
from scaling.tables import limits

COLUMNS = ["quantity", "precision", "unit", "value", "value_min", "value_max", "count", "peak"]
TOPOLOGY = "\tGPU0\tGPU1\nGPU0\t X \tNV18"


def product(size, seconds, precision="bf16"):
    kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": size}
    return {**kind, "seconds": seconds}


def document(*rows, topology=None):
    return {"rows": list(rows), "environment": {"topology": topology}}


def test_a_matrix_product_costs_two_operations_for_each_of_n_cubed():
    # 2 · 1000³ = 2e9 operations; 2, 4 and 5 ms.
    row = limits.peaks(document(product(1000, [4e-3, 2e-3, 5e-3]))).iloc[0]
    assert row[COLUMNS].tolist() == ["matrix_product", "bf16", "FLOP/s", 5e11, 4e11, 1e12, 3, True]


def test_a_copy_within_a_device_reads_and_writes_and_one_between_gpus_crosses_once():
    within = {"quantity": "device_copy", "copy_bytes": 10**9, "seconds": [1e-3]}
    between = {"quantity": "gpu_to_gpu_copy", "source_gpu": 1, "target_gpu": 0}
    table = limits.peaks(document(within, {**within, **between}))
    assert table["value"].tolist() == [2e12, 1e12]
    assert table["unit"].tolist() == ["B/s", "B/s"]
    assert table["source_gpu"].tolist() == [pd.NA, 1]


def test_the_peak_of_a_precision_is_its_best_size():
    # 2e9 operations in 4 ms and 16e9 in 20 ms: 500 and 800 GFLOP/s; the large one is faster at
    # its median only. float32 has a peak of its own.
    table = limits.peaks(
        document(
            product(1000, [4e-3, 4e-3, 4e-3]),
            product(2000, [20e-3, 19e-3, 90e-3]),
            product(1000, [40e-3], precision="float32"),
        )
    )
    assert table["peak"].tolist() == [False, True, True]
    assert limits.peak_flops_per_second(table, "bf16") == 8e11
    assert limits.peak_flops_per_second(table, "float32") == 5e10
    assert math.isnan(limits.peak_flops_per_second(table, "tf32"))


def test_the_topology_is_kept_as_text():
    assert limits.topology(document(topology=TOPOLOGY)) == "\tGPU0\tGPU1\nGPU0\t X \tNV18\n"
    assert limits.topology(document(topology=None)) == ""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    """peaks.json of this CPU, as the rule has it made."""
    output = tmp_path_factory.mktemp("peaks") / "peaks.json"
    options = ["--matrix-sizes", "16", "256", "--copy-bytes", "4096", "--repeats", "3"]
    peaks_measure.main([*options, "--device", "cpu", "--output", str(output)])
    return output


def test_a_cpu_is_measured_in_float32_and_bf16_and_copies_within_its_memory(measured):
    record = files.read_json(measured)
    what = [
        (row["quantity"], row.get("precision"), row.get("matrix_size")) for row in record["rows"]
    ]
    assert what == [
        *(("matrix_product", "float32", 16), ("matrix_product", "float32", 256)),
        *(("matrix_product", "bf16", 16), ("matrix_product", "bf16", 256)),
        ("device_copy", None, None),
    ]
    assert all(len(row["seconds"]) == 3 and min(row["seconds"]) > 0 for row in record["rows"])
    assert record["device"] == "cpu" and record["gpus"] == 0
    assert record["environment"]["torch"] and record["environment"]["ended"]
