"""The tables of quantized variants, made of their records."""

from pathlib import Path

import pandas as pd
import pytest

import tables_quantization
from examples.quantized_digits import LAST, STAGES, document, evaluate
from scaling.core import files
from scaling.core.errors import UserError


def tabulate(folder: Path, records: list[Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables_quantization.main(["--records", *map(str, records), "--output", str(folder)])
    names = "quantization.csv", "quantization_layers.csv"
    return tuple(pd.read_csv(folder / name) for name in names)


def test_the_table_has_a_row_per_seed_and_variant_in_the_order_of_the_seeds(
    quantized_digits: Path, tmp_path: Path
) -> None:
    for name, scheme in STAGES.items():
        evaluate(quantized_digits, f"second-{name}.json", variant=name, scheme=scheme, seed=1)
    evaluate(quantized_digits, "wrong.json", variant="wrong", scheme={"mistake": "255_for_127"})
    records = [quantized_digits / f"second-{name}.json" for name in STAGES]
    records += [quantized_digits / f"{name}.json" for name in [*STAGES, "wrong"]]
    table, layers = tabulate(tmp_path, records)
    assert (
        (tmp_path / "quantization.csv")
        .read_text()
        .startswith(
            "seed,stage,accuracy_percent,difference_points,agreement_percent,test_images,standard_error"
        )
    )
    assert table["seed"].tolist() == [0] * 5 + [1] * 4
    assert table["stage"].tolist() == ["float32", *STAGES, "wrong", "float32", *STAGES]
    assert table["accuracy_percent"][3] == pytest.approx(
        document(quantized_digits)["accuracy_percent"]
    )
    assert table["compression"].round(2).tolist() == [1, *[3.95] * 4, 1, *[3.95] * 3]
    assert table["logits_differing"].dropna().tolist() == [0] * 5
    assert table["sqnr_after_relu_db"][4] < table["sqnr_after_relu_db"][3] - 3
    assert "SQNR" in table["revealed_by"][4] and table["revealed_by"].notna().sum() == 1

    assert table["mean_seeds"].dropna().tolist() == [2, 2, 2, 1, 2, 2, 2]
    paired = pd.read_csv(tmp_path / "quantization_paired.csv")
    assert list(zip(paired["stage"], paired["reference_stage"], paired["seeds"], strict=True)) == [
        *(("weights+activations", "weights", 2), (LAST, "weights+activations", 2)),
        ("wrong", LAST, 1),
    ]
    changes = table.groupby("stage")["accuracy_percent"].mean().diff()
    assert paired["difference_points"][1] == pytest.approx(changes[LAST])

    own = layers[(layers["seed"] == 0) & (layers["stage"] == LAST)]
    assert own["layer"].tolist() == ["images", "conv1", "conv2", "fc1", "fc2", "fc3"]
    assert own["top_step"].tolist() == pytest.approx([127] * 6)
    assert own["step_minimum"].tolist() == [-128] * 6 and own["step_maximum"].tolist() == [127] * 6
    assert own["packed_bytes"].sum() + 4 == document(quantized_digits)["packed_bytes"]
    assert len(layers) == 5 + 6 + 6 + 6 + 5 + 6 + 6


def test_a_study_from_before_there_were_variants_keeps_the_rows_it_has(
    quantized_digits: Path, tmp_path: Path
) -> None:
    columns = ["stage", "accuracy_percent", "difference_points", "agreement_percent"]
    columns += ["test_images"]
    stages = [
        dict(zip(columns, row, strict=True))
        for row in (("float32", 55.0, 0.0, 100.0, 297), (LAST, 54.0, -1.0, 97.0, 297))
    ]
    kept = {key: document(quantized_digits)[key] for key in ("dataset", "layers", "histograms")}
    files.write_json(tmp_path / "stages.json", {"seed": 0, "stages": stages, **kept})
    table, layers = tabulate(tmp_path, [tmp_path / "stages.json"])
    assert table["stage"].tolist() == ["float32", LAST]
    assert table["difference_points"].tolist() == [0, -1]
    assert table["standard_error_points"].isna().all()
    assert layers.empty and "weight_sqnr_db" in layers.columns
    assert pd.read_csv(tmp_path / "quantization_paired.csv").empty


def test_the_tables_refuse_a_variant_twice_another_dataset_or_network_and_other_files(
    quantized_digits: Path, tmp_path: Path
) -> None:
    own = document(quantized_digits)
    other = own | {"seed": 7, "dataset": {"source": "cifar10", "checksum": "0"}}
    files.write_json(tmp_path / "other.json", other)
    network = own | {"variant": "new", "float32": {"accuracy_percent": 12.0}}
    files.write_json(tmp_path / "network.json", network)
    files.write_json(tmp_path / "stranger.json", {"seed": 0})
    for second, complaint in (
        (quantized_digits / f"{LAST}.json", r"are of seed 0, weights\+activations\+bias"),
        (tmp_path / "other.json", "made on different datasets"),
        (tmp_path / "network.json", "of seed 0 are of different networks, .* 12.00 %, "),
        (tmp_path / "stranger.json", "was not written by quantize_evaluate.py"),
    ):
        with pytest.raises(UserError, match=complaint):
            tabulate(tmp_path, [quantized_digits / f"{LAST}.json", second])
