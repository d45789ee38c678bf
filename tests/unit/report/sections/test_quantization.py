"""Part B of the report: every figure of it from the tables, and the words on them."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from examples import quantization_example, report_tables
from scaling.report.sections.quantization import part_b
from scaling.report.sections.quantization_columns import share
from scaling.report.table import SectionPart, Table
from scaling.tables import schema
from scaling.tables.experiments.quantization_cost import bits, cost, low_bits, method

Parts = dict[str, SectionPart]
Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return as_read(quantization_example.make(), tmp_path_factory.mktemp("tables"))


def as_read(tables: Tables, folder: Path) -> Tables:
    """The tables as they are when they have been written and are read back."""
    paths = {name: folder / f"{name}.csv" for name in tables}
    for name, path in paths.items():
        schema.write(name, tables[name], path)
    return {name: schema.read(name, path) for name, path in paths.items()}


@pytest.fixture
def tables(example: Tables) -> Tables:
    """The example's tables, for a test to change."""
    return {name: table.copy() for name, table in example.items()}


@pytest.fixture(scope="module")
def parts(example: Tables) -> Parts:
    return made(example)


def made(tables: Tables) -> Parts:
    study = SimpleNamespace(**tables, experiment=lambda name: tables[name])
    found: Parts = part_b(study)["parts"]  # type: ignore[arg-type]
    for shown in (table for part in found.values() for table in part.tables):
        assert all(cell.text for row in shown.rows for cell in row), shown.title
    return found


def texts(table: Table, row: int) -> list[str]:
    """The cells of a row as a reader sees them: text, detail, flags."""
    return [" ".join(filter(None, [c.text, c.detail, *c.flags])) for c in table.rows[row]]


def test_a_stage_has_every_seed_their_mean_and_its_paired_error(parts: Parts) -> None:
    part = parts["weights"]
    # (0.1 - 0.1 - 0.03) / 3 = -0.01; the error of the mean is the table's own.
    assert texts(part.tables[0], 1) == [
        *("weights", "62.10 +0.10 ± 0.09", "62.90 −0.10 ± 0.09", "63.97 −0.03 ± 0.09"),
        *("62.99 62.10–63.97", "−0.01 −0.10 to +0.10 within noise", "0.06", "98.9"),
    ]
    assert part.sentences == [
        "With int8 weights test accuracy is 62.99 %, in float32 63.00 % (mean of 3 seeds): −0.01 ± "
        "0.06 points; −0.10 to +0.10 by seed, within noise (two standard errors). 98.9 % of the "
        "images keep their class."
    ]


def test_a_stage_is_set_beside_the_one_before(parts: Parts) -> None:
    # -0.5 against 2 · sqrt(3 · 0.15²) / 3 = 0.17: no noise.
    assert texts(parts["biases"].tables[0], 1)[5] == "−0.50 −0.60 to −0.40"
    own, change = parts["biases"].sentences
    assert "−0.50 ± 0.09 points; −0.60 to −0.40 by seed, more than two standard errors" in own
    assert change == (
        "Against weights+activations, the same networks one stage earlier, it changes by −0.30 ± "
        "0.10 points (−0.30 to −0.30 by seed), paired image by image: more than two standard "
        "errors."
    )
    assert parts["activations"].sentences[1].endswith("within noise (two standard errors).")


def test_a_stage_that_is_missing_is_named(tables: Tables) -> None:
    stages = tables["quantization"]
    tables["quantization"] = stages[stages["stage"] != "weights+activations"]
    parts = made(tables)
    missing = "The stage weights+activations was not evaluated in this study."
    assert parts["activations"].missing == missing
    heads = [row[0].text for row in parts["biases"].tables[0].rows]
    assert heads == ["float32", "weights+activations+bias"]


def test_two_standard_errors_are_the_limit() -> None:
    rows = quantization_example.variants().query("stage == 'weights'")
    limit = rows.assign(difference_points=0.2, standard_error_points=0.1)
    # One seed: 0.2 = 2 · 0.1; three seeds: 0.2 > 2 · 0.1 / sqrt(3).
    assert cost(limit.head(1)).within_noise is True
    assert cost(limit).within_noise is False


def test_layer_statistics_name_the_layers_at_their_ends(parts: Parts) -> None:
    (sentence,) = parts["weight_layers"].sentences
    assert "of conv1 reach furthest, to ±1.00, those of fc3 least, to ±0.400; none is" in sentence
    assert "The lowest SQNR of a layer’s weights is 38.0 dB (conv1, seed 2)." in sentence
    (table,) = parts["activation_layers"].tables
    assert table.title.endswith("(mean over 3 seeds, smallest to largest below)")
    # 0.001 · 6000 = 6 steps per unit; the images have one scale and no accumulator.
    conv1 = ["conv1", "0 to 22.0", "6.00", "0.00100", "127.000", "0\u00a0%"]
    assert texts(table, 1)[:6] == conv1
    assert texts(table, 0)[3] == "–"


def test_logits_that_equal_integers_and_accumulators_are_counted(tables: Tables) -> None:
    floats, integers, sums = made(tables)["accumulators"].sentences
    # Five variants with int32 biases in three seeds, two mistakes in one; one with float biases.
    assert integers.startswith("Each of 17 variants with quantized activations and int32 biases")
    assert integers.endswith("with integers alone: 1,700,000 logits, of which none differs.")
    assert floats.startswith("Each of 3 variants with quantized activations and float biases")
    # 20,001,000 / (2³¹ - 1), and 20,000,000 > 2²⁴ = 16,777,216.
    assert "beyond 20,001,000 (fc3), 0.93\u00a0% of what int32 holds. Products and bias of" in sums
    wrong = tables["quantization"]
    chosen = (wrong["stage"] == "float-logits") & (wrong["seed"] == 1)
    wrong.loc[chosen, "logits_differing"] = 7
    differing = made(tables)["accumulators"].sentences[1]
    assert differing.endswith("of which 7 differ: float-logits (seed 1).")


def test_a_mistake_that_accuracy_passes_is_told_with_what_reveals_it(parts: Parts) -> None:
    part = parts["mistakes"]
    assert part.sentences == [
        "Accuracy does not reveal 255_for_127: −0.40 ± 0.15 points to float32, the sound variant "
        "−0.40 ± 0.15; from one to the other +0.00 ± 0.08, paired by image (1 seed). Revealed by: "
        "SQNR; clipped share. Beside the sound variant’s SQNR, that of what a layer passes on is "
        "9.2 dB lower in every layer (lowest of a layer 23.8 dB, of the sound variant 33.0 dB)."
    ]
    # Below each figure the sound variant's of the same seed.
    no_product = texts(part.tables[0], 1)
    assert no_product[:3] == ["no_product 1 seed", "10.00 61.60", "10.00 96.50"]
    assert no_product[-2:] == ["−51.60 ± 0.60", "accuracy; SQNR"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (5, "in conv1, 4.2 dB at least (lowest of a layer 23.8 dB,"),
        (13, "in conv1, 3.8 dB higher in fc3 (lowest of a layer"),
    ],
)
def test_a_loss_that_layers_do_not_share_is_told_with_its_ends(
    tables: Tables, change: float, told: str
) -> None:
    table = tables["quantization_layers"]
    chosen = table["stage"].str.contains("255_for_127") & (table["layer"] != "conv1")
    table.loc[chosen, "sqnr_after_relu_db"] += change
    (sentence,) = made(tables)["mistakes"].sentences
    assert f"9.2 dB lower at most, {told}" in sentence


def test_accuracy_reveals_what_all_seeds_together_lose_beyond_noise(tables: Tables) -> None:
    paired = tables["quantization_paired"]
    lost = paired["stage"] == "mistake-255_for_127"
    for points, reveals in ((-0.15, False), (-0.17, True), (0.9, False)):
        paired.loc[lost, "difference_points"] = points
        part = made(tables)["mistakes"]
        assert texts(part.tables[0], 0)[-1] == "accuracy; " * reveals + "SQNR; clipped share"
        assert ("Accuracy reveals each of these mistakes." in part.sentences) is reveals


def test_a_mistake_without_a_sound_variant_or_a_diagnostic_says_so(tables: Tables) -> None:
    table = tables["quantization"] = tables["quantization"].assign(revealed_by="")
    assert texts(made(tables)["mistakes"].tables[0], 0)[-1] == "none of the diagnostics"
    tables["quantization"] = table[table["stage"].isin(["float32", "mistake-no_product"])]
    alone = made(tables)["mistakes"]
    assert texts(alone.tables[0], 0)[-1].startswith("no sound variant of the same options")
    assert alone.sentences == []


def test_fewer_bits_are_set_against_the_size_by_method(parts: Parts) -> None:
    part = parts["fewer_bits"]
    assert texts(part.tables[0], 1) == [
        *("W4\u00a0A8", "−3.00 ± 0.17 −3.50 to −2.50", "32.0 kB 7.75×"),
        *("−0.10 ± 0.12 −0.30 to +0.10 within noise", "32.4 kB 7.66×"),
    ]
    assert texts(part.tables[0], 2)[1] == "not evaluated"
    max_abs, gptq = part.sentences
    assert (
        "With max-abs no network below 8 bits is within noise of float32; the smallest" in max_abs
    )
    assert "With GPTQ, ranges by MSE the smallest network below 8 bits within noise of" in gptq


def test_methods_are_named_by_the_options_that_differ(tables: Tables) -> None:
    table = tables["quantization"]
    rows = {row.stage: row for row in table.itertuples()}
    assert method(rows["weights"]) == method(rows["weights+activations+bias"]) == "max-abs"
    assert method(rows["weights+activations"]) == "float biases"
    assert bits(rows["weights"]) == "W8\u00a0A32"
    # The 8-bit variant of a method starts its curve; other methods and mistakes have none.
    assert set(low_bits(table)["stage"]) == {
        *("weights+activations+bias", "w4a8-max_abs", "w4a8-gptq", "w2a8-gptq")
    }


def test_a_method_is_one_with_its_unsigned_self_unless_both_have_the_same_bits(
    tables: Tables,
) -> None:
    table = tables["quantization"]
    plain = table[table["stage"].isin(["weights+activations+bias", "w4a8-max_abs"])]
    fewer = plain[plain["stage"] == "w4a8-max_abs"].assign(activation_bits=4, unsigned=True)
    assert set(low_bits(pd.concat([plain, fewer]))["method"]) == {
        "max-abs, unsigned activations below 8 bits"
    }
    both = pd.concat([plain, fewer, fewer.assign(unsigned=False)])
    assert set(low_bits(both)["method"]) == {"max-abs", "unsigned activations"}


def test_other_choices_are_beside_the_last_stage(parts: Parts) -> None:
    part = parts["choices"]
    heads = [texts(part.tables[0], row)[0] for row in range(2)]
    assert heads == ["weights+activations+bias 3 seeds", "float-logits 3 seeds"]
    assert part.tables[0].notes == ["float-logits: float logits"]
    ending = "98.2 %, against 96.5 % with weights+activations+bias on the same seeds."
    assert part.sentences[0].endswith(ending)


def test_int8_is_called_faster_only_than_the_same_engines_float32(parts: Parts) -> None:
    part = parts["backends"]
    slow, fast = part.sentences
    assert slow == (
        "At batch 1 onnxruntime in int8 takes 1.02 of the time of onnxruntime in float32 "
        "(0.950–1.10 over rounds and seeds), faster in some rounds and slower in others."
    )
    assert fast.endswith("(0.550–0.700 over rounds and seeds), faster in every round.")
    (table,) = part.tables
    assert table.notes == ["torchao: not installed (torchao missing)"]
    ours = texts(table, 0)
    assert ours[0] == "this study, torch 2.15.0" and ours[-2:] == ["– not timed"] * 2
    assert texts(table, 2)[-2:] == ["1", "1"]


def test_resnet_is_beside_its_float32(parts: Parts) -> None:
    (table,) = parts["resnet"].tables
    assert texts(table, 0) == ["float32", "–", "90.00", *["–"] * 5, "1"]
    assert texts(table, 1) == [
        *("weights+activations+bias", "one per channel", "89.80", "−0.20 one seed", "0.05"),
        *("98.0", "4.00×", "5,000,000", "1"),
    ]


def test_a_study_from_before_layer_statistics_says_what_is_missing(
    tables: Tables, tmp_path: Path
) -> None:
    older = as_read({"quantization": report_tables.quantization()}, tmp_path)
    parts = made({name: table[:0] for name, table in tables.items()} | older)
    assert (
        "by seed, with no standard error in this study’s records" in parts["weights"].sentences[0]
    )
    statistics = "The records of this study hold no layer statistics for a stage with "
    assert {name: part.missing for name, part in parts.items() if part.missing} == {
        "weight_layers": f"{statistics}quantized weights.",
        "activation_layers": f"{statistics}quantized activations.",
        "accumulators": f"{statistics}integer accumulators.",
        "mistakes": "No known mistake was evaluated in this study.",
        "fewer_bits": "No variant of this study has fewer than 8 bits.",
        "choices": "This study has no other variants of 8 bits.",
        "backends": "Other quantizers were not measured in this study.",
        "resnet": "ResNet-18 was not taken through the stages in this study.",
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0 %"), (2e-7, "< 0.001 %"), (2.3e-5, "0.0023 %"), (0.9881, "99 %"), (None, "–")],
)
def test_tiny_shares_are_not_rounded_to_none(value: float | None, written: str) -> None:
    shown = share(float("nan") if value is None else value)
    assert shown == written.replace(" ", "\u00a0")
