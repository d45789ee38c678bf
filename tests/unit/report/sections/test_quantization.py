"""Part B of the report: the lab's questions in order, and every figure of them from the tables."""

import pandas as pd
import pytest

from examples import quantization_example, report_tables
from examples.report_page import Page, render
from scaling.report.sections.quantization_columns import share
from scaling.report.sections.quantization_variants import known_mistakes
from scaling.tables.experiments import quantization_cost
from scaling.tables.experiments.quantization_cost import bits, low_bits, method

ACCURACY = "Accuracy with int8 weights"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    tables = report_tables.make() | quantization_example.make()
    return render(tmp_path_factory.mktemp("study"), tables)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a study from before there were variants."""
    return render(tmp_path_factory.mktemp("older"), report_tables.make())


def words(page: Page) -> str:
    return " ".join(page.text.split())


def test_the_questions_come_in_the_labs_order(page: Page) -> None:
    places = [page.text.index(f"Part B, question {number}.") for number in range(1, 6)]
    assert places == sorted(places)


def test_a_stage_has_every_seed_their_mean_and_its_paired_error(page: Page) -> None:
    # (0.1 - 0.1 - 0.03) / 3 = -0.01; the error of the mean is the table's own.
    assert page.row(ACCURACY, "weights") == [
        *("62.10 +0.10 ± 0.09", "62.90 −0.10 ± 0.09", "63.97 −0.03 ± 0.09"),
        *("62.99 62.10–63.97", "−0.01 −0.10 to +0.10 within noise", "0.06", "98.9"),
    ]
    assert (
        "With int8 weights test accuracy is 62.99 %, in float32 63.00 % (mean of 3 seeds): −0.01 ± "
        "0.06 points; −0.10 to +0.10 by seed, within noise (two standard errors)."
    ) in words(page)


def test_a_mean_beyond_two_standard_errors_is_not_called_noise(page: Page) -> None:
    # -0.5 against 2 · sqrt(3 · 0.15²) / 3 = 0.17.
    title = f"{ACCURACY} and activations with int32 biases"
    assert page.row(title, "weights+activations+bias")[4] == "−0.50 −0.60 to −0.40"
    assert "−0.50 ± 0.09 points; −0.60 to −0.40 by seed, more than two standard errors" in words(
        page
    )


def test_a_stage_is_set_beside_the_one_before(page: Page) -> None:
    text = words(page)
    assert (
        "Against weights+activations, the same networks one stage earlier, it changes by −0.30 ± "
        "0.10 points (−0.30 to −0.30 by seed), paired image by image: more than two standard "
        "errors."
    ) in text
    assert "(−0.20 to −0.17 by seed), paired image by image: within noise (two standard" in text


def test_two_standard_errors_are_the_limit() -> None:
    rows = quantization_example.variants().query("stage == 'weights'")
    limit = rows.assign(difference_points=0.2, standard_error_points=0.1)
    # One seed: 0.2 = 2 · 0.1; three seeds: 0.2 > 2 · 0.1 / sqrt(3).
    assert quantization_cost.cost(limit.head(1)).within_noise is True
    assert quantization_cost.cost(limit).within_noise is False


def test_layer_statistics_name_the_layers_at_their_ends(page: Page) -> None:
    text = words(page)
    assert "The weights of conv1 reach furthest, to ±1.00, those of fc3 least, to ±0.400;" in text
    assert "The lowest SQNR of a layer’s weights is 38.0 dB (conv1, seed 2)." in text
    title = "Activations by layer, stage weights+activations+bias (mean over 3 seeds, smallest to "
    title += "largest below)"
    # 0.001 · 6000 = 6 steps per unit; the images have one scale and no accumulator.
    assert page.row(title, "conv1")[:5] == ["0 to 22.0", "6.00", "0.00100", "127.000", "0 %"]
    assert page.row(title, "images")[2] == "–"


def test_logits_that_equal_integers_and_accumulators_are_counted(page: Page) -> None:
    text = words(page)
    # Five variants with int32 biases in three seeds, two mistakes in one; one with float biases.
    assert "Each of 17 variants with quantized activations and int32 biases" in text
    assert "with integers alone: 1,700,000 logits, of which none differs." in text
    assert "Each of 3 variants with quantized activations and float biases" in text
    assert "added as in the simulation: 300,000 logits, of which none differs." in text
    # 20,001,000 / (2³¹ - 1), and 20,000,000 > 2²⁴ = 16,777,216.
    assert (
        "beyond 20,001,000 (fc3), 0.93 % of what int32 holds. Products and bias of fc3 can" in text
    )


def test_a_loss_that_layers_do_not_share_is_told_with_its_reach(tmp_path) -> None:
    tables = report_tables.make() | quantization_example.make()
    layers = tables["quantization_layers"]
    chosen = layers["stage"].str.contains("255_for_127") & (layers["layer"] != "conv1")
    assert chosen.any()
    layers.loc[chosen, "sqnr_after_relu_db"] += 5
    reach = "is 9.2 dB lower at most, in conv1, 4.2 dB at least (lowest of a layer 23.8 dB,"
    assert reach in words(render(tmp_path, tables))


def test_a_layer_that_gains_is_told_with_those_that_lose() -> None:
    table = quantization_example.variants().fillna({"mistake": "", "revealed_by": ""})
    layers = quantization_example.layers()
    chosen = layers["stage"].str.contains("255_for_127") & (layers["layer"] == "fc3")
    layers.loc[chosen, "sqnr_after_relu_db"] += 13
    (sentence,) = known_mistakes(table, layers, quantization_example.paired()).sentences
    assert "9.2 dB lower at most, in conv1, 3.8 dB higher in fc3 (lowest of a layer" in sentence


def test_a_logit_that_differs_is_told_with_its_variant(tmp_path) -> None:
    tables = report_tables.make() | quantization_example.make()
    wrong = tables["quantization"]
    chosen = (wrong["stage"] == "float-logits") & (wrong["seed"] == 1)
    wrong.loc[chosen, "logits_differing"] = 7
    assert "of which 7 differ: float-logits (seed 1)." in words(render(tmp_path, tables))


def test_a_mistake_that_accuracy_passes_is_told_with_what_reveals_it(page: Page) -> None:
    assert (
        "Accuracy does not reveal 255_for_127: −0.40 ± 0.15 points to float32, the sound variant "
        "−0.40 ± 0.15; from one to the other +0.00 ± 0.08, paired by image (1 seed). Revealed by: "
        "SQNR; clipped share. Beside the sound variant’s SQNR, that of what a layer passes on is "
        "9.2 dB lower in every layer (lowest of a layer 23.8 dB, of the sound variant 33.0 dB)."
    ) in words(page)
    assert "does not reveal no_product" not in page.text
    rows = page.rows("Known mistakes")
    line = next(row for row in rows if row[0] == "no_product 1 seed")
    # Below each figure the sound variant's of the same seed.
    assert line[1:3] == ["10.00 61.60", "10.00 96.50"]
    assert line[-2:] == ["−51.60 ± 0.60", "accuracy; SQNR"]


def test_accuracy_reveals_what_all_seeds_together_lose_beyond_noise() -> None:
    table = quantization_example.variants().fillna({"mistake": "", "revealed_by": ""})
    paired, layers = quantization_example.paired(), quantization_example.layers()
    lost = paired["stage"] == "mistake-255_for_127"
    for points, reveals in ((-0.15, False), (-0.17, True), (0.9, False)):
        paired.loc[lost, "difference_points"] = points
        part = known_mistakes(table, layers, paired)
        told = part.tables[0].rows[0][-1].text
        assert told == ("accuracy; " if reveals else "") + "SQNR; clipped share"
        assert ("Accuracy reveals each of these mistakes." in part.sentences) is reveals


def test_a_mistake_without_a_sound_variant_or_a_diagnostic_says_so() -> None:
    table = quantization_example.variants()
    table["mistake"] = table["mistake"].fillna("")
    table["revealed_by"] = ""
    layers, paired = quantization_example.layers(), quantization_example.paired()
    (shown,) = known_mistakes(table, layers, paired).tables
    assert shown.rows[0][-1].text == "none of the diagnostics"
    alone = table[table["stage"].isin(["float32", "mistake-no_product"])]
    part = known_mistakes(alone, layers, paired)
    assert part.tables[0].rows[0][-1].text.startswith("no sound variant of the same options")
    assert part.sentences == []


def test_fewer_bits_are_set_against_the_size_by_method(page: Page) -> None:
    title = "Accuracy and size by bits"
    assert page.row(title, "W4 A8") == [
        *("−3.00 ± 0.17 −3.50 to −2.50", "32.0 kB 7.75×"),
        *("−0.10 ± 0.12 −0.30 to +0.10 within noise", "32.4 kB 7.66×"),
    ]
    assert page.row(title, "W2 A8")[0] == "not evaluated"
    text = words(page)
    assert (
        "With max-abs no network below 8 bits is within noise of float32; the smallest is" in text
    )
    assert "With GPTQ, ranges by MSE the smallest network below 8 bits within noise of" in text


def test_methods_are_named_by_the_options_that_differ() -> None:
    table = quantization_example.variants().fillna({"mistake": ""})
    rows = {row.stage: row for row in table.itertuples()}
    assert method(rows["weights"]) == method(rows["weights+activations+bias"]) == "max-abs"
    assert method(rows["weights+activations"]) == "float biases"
    assert bits(rows["weights"]) == "W8\u00a0A32"
    # The 8-bit variant of a method starts its curve; other methods and mistakes have none.
    assert set(low_bits(table)["stage"]) == {
        *("weights+activations+bias", "w4a8-max_abs", "w4a8-gptq", "w2a8-gptq")
    }


def test_a_method_is_one_with_its_unsigned_self_unless_both_have_the_same_bits() -> None:
    table = quantization_example.variants().fillna({"mistake": ""})
    plain = table[table["stage"].isin(["weights+activations+bias", "w4a8-max_abs"])]
    fewer = plain[plain["stage"] == "w4a8-max_abs"].assign(activation_bits=4, unsigned=True)
    assert set(low_bits(pd.concat([plain, fewer]))["method"]) == {
        "max-abs, unsigned activations below 8 bits"
    }
    both = pd.concat([plain, fewer, fewer.assign(unsigned=False)])
    assert set(low_bits(both)["method"]) == {"max-abs", "unsigned activations"}


def test_other_choices_are_beside_the_last_stage(page: Page) -> None:
    heads = [row[0] for row in page.rows("Other choices at 8 bits")]
    assert heads == ["weights+activations+bias 3 seeds", "float-logits 3 seeds"]
    assert "float-logits: float logits" in page.text
    assert "98.2 %, against 96.5 % with weights+activations+bias on the same seeds." in words(page)


def test_int8_is_called_faster_only_than_the_same_engines_float32(page: Page) -> None:
    text = words(page)
    assert (
        "At batch 1 onnxruntime in int8 takes 1.02 of the time of onnxruntime in float32 "
        "(0.950–1.10 over rounds and seeds), faster in some rounds and slower in others."
    ) in text
    assert "At batch 256 onnxruntime in int8 takes 0.60" in text
    assert "(0.550–0.700 over rounds and seeds), faster in every round." in text
    assert "torchao: not installed (torchao missing)" in text
    title = "Other quantizers on the same weights and images"
    assert page.row(title, "this study, torch 2.15.0")[-2:] == ["– not timed", "– not timed"]


def test_resnet_is_beside_its_float32(page: Page) -> None:
    assert page.row("ResNet-18 through the stages", "weights+activations+bias") == [
        *("one per channel", "89.80", "−0.20 one seed", "0.05", "98.0", "4.00×", "5,000,000", "1")
    ]


def test_a_study_from_before_layer_statistics_says_what_is_missing(older: Page) -> None:
    text = words(older)
    assert "by seed, with no standard error in this study’s records" in text
    assert "hold no layer statistics for a stage with quantized weights." in text
    assert "hold no layer statistics for a stage with quantized activations." in text
    assert "hold no layer statistics for a stage with integer accumulators." in text
    assert "No known mistake was evaluated in this study." in text
    assert "No variant of this study has fewer than 8 bits." in text
    assert "This study has no other variants of 8 bits." in text
    assert "Other quantizers were not measured in this study." in text
    assert "ResNet-18 was not taken through the stages in this study." in text


def test_a_stage_that_is_missing_is_named(tmp_path) -> None:
    tables = report_tables.make()
    stages = tables["quantization"]
    tables["quantization"] = stages[stages["stage"] != "weights+activations"]
    page = render(tmp_path, tables)
    assert "The stage weights+activations was not evaluated in this study." in page.text
    heads = page.rows(f"{ACCURACY} and activations with int32 biases")
    assert [row[0] for row in heads] == ["float32", "weights+activations+bias"]


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0 %"), (2e-7, "< 0.001 %"), (2.3e-5, "0.0023 %"), (0.9881, "99 %"), (None, "–")],
)
def test_tiny_shares_are_not_rounded_to_none(value: float | None, written: str) -> None:
    shown = share(float("nan") if value is None else value)
    assert shown == written.replace(" ", "\u00a0")


def test_no_cell_of_part_b_is_blank(page: Page, older: Page) -> None:
    for shown in (page, older):
        for title in shown.tables:
            for row in shown.rows(title):
                assert all(row), (title, row)
