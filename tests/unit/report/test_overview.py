"""The first screen: what to run, how it scales, what limits it, and the map."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from examples import report_tables
from examples.records import full_training
from scaling.claims import questions
from scaling.report import cell_map, frames, overview, provenance
from scaling.report.frames import audit_counts
from scaling.report.views import scaling
from scaling.tables import schema
from scaling.tables.experiments.full_trainings import full_trainings, trained_to_accuracy


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return report_tables.study(tmp_path_factory.mktemp("study"), report_tables.make())


@pytest.fixture
def cells(study):
    return frames.cells(study)


def test_a_study_of_int8_alone_names_machines_and_commits_of_its_records(study):
    made = {"cpu": ["", "EPYC"], "commit": ["", "0123456789abcdef+changes"]}
    tables = dict.fromkeys(("quantization", "quantization_peers"), pd.DataFrame(made))
    resnet = {"device": ["NVIDIA H200"], "commit": ["0011223344556677"]}
    tables["quantization_resnet"] = pd.DataFrame(resnet)
    alone = replace(study, found={**tables, "timing": study.timing.assign(status="missing")})
    said = "Int8 quantization alone · EPYC · NVIDIA H200 · commit "
    said += "0123456789ab with uncommitted changes, 001122334455"
    assert provenance.summary(alone, None) == said


def test_the_fastest_that_learns_is_told_from_the_fastest(study, cells):
    """Beyond a global batch of 128 the example learns less than its reference by over 2 points."""
    run_this, scales, limit, trust = overview.cards(study, cells)
    assert str(run_this.headline) == "fast, 1 × 128"
    assert str(run_this.text) == (
        "1.76 s an epoch: the fastest that learns (75 %, 3 seeds). Fastest of all: "
        "fast/ddp, 4 × 512, 0.320 s, but 41 %."
    )
    # T(1) / T(4) of fast/ddp: 7.2 / 2.2, 1.76 / 0.6, 1.32 / 0.32, 1.24 / 0.33.
    assert (scales.title, str(scales.headline)) == ("Faster on 4 GPUs", "2.93–4.12×")
    assert str(scales.text).startswith("fast/ddp: 73 % to 103 % efficient. Above 4× the GPUs alone")
    assert " plain/ddp: 3.16–3.33×." in str(scales.text)
    # 40,000 images · 3.329 GFLOP / 1.76 s of 797 TFLOP/s: 9.5 % of the peak; no trace.
    assert limit.headline == "not known" and str(limit.text).startswith("91 % of")
    # Every range is ± 2 %.
    assert str(trust.headline) == "4.0 %" and audit_counts(study.audit) in str(trust.text)
    assert re.search(
        r"Still changing: .+, b\s=\s512 ended 9 % slower, and \d+ other cells\.$", str(trust.text)
    )


def marks(study, cells):
    """All marks on the map."""
    return [
        mark
        for _, row in cell_map.map_rows(cells, overview.recommended(study, cells))
        for cell in row.values()
        for mark in cell["marks"]
    ]


def test_without_an_accuracy_the_fastest_is_shown_and_not_recommended(study, cells):
    unknown = cells.drop(columns="reference")
    card, *_ = overview.cards(study, unknown)
    assert (card.title, str(card.headline)) == ("Fastest", "fast/ddp, 4 × 512")
    assert marks(study, unknown) == ["fastest"]
    assert str(card.text) == "0.320 s an epoch. No accuracy is known."


def test_random_images_recommend_nothing_by_accuracy(study):
    made_up = replace(study, manifest={**study.manifest, "source": "synthetic"})
    card, *_ = overview.cards(made_up, frames.cells(made_up))
    assert (card.title, str(card.text)[-21:]) == ("Fastest", "No accuracy is known.")


def test_an_accuracy_of_several_seeds_is_believed_before_that_of_one(study, cells):
    # 0.320 s at 4 × 512 is faster than 1.76 s at 1 × 128, but has learned so in one seed alone.
    place = (cells["recipe"] == "fast") & (cells["gpus"] == 4) & (cells["batch_size"] == 512)
    alone = cells.copy()
    alone.loc[place, ["difference", "test_accuracy_count"]] = [0.0, 1]
    card, *_ = overview.cards(study, alone)
    assert (card.title, str(card.headline)) == ("Run this", "fast, 1 × 128")
    assert sorted(set(marks(study, alone))) == ["fastest", "recommended"]
    once = cells.assign(test_accuracy_count=1)
    card, _, limit, _ = overview.cards(study, once)
    assert (card.title, str(card.headline)) == ("Fastest that learned, one seed", "fast, 1 × 128")
    assert "one seed" not in str(card.text) and "of fast, 1 × 128." in str(limit.text)
    assert sorted(set(marks(study, once))) == ["fastest", "recommended"]


def test_trainings_that_came_to_the_accuracy_go_before_all_that_is_inferred(cells, study):
    one = [full_training(1, seed, seconds, 0.9) for seed, seconds in enumerate((6.0, 6.2))]
    two = [full_training(2, seed, seconds, 0.9) for seed, seconds in enumerate((3.0, 3.1))]
    four = [full_training(4, seed, 2.0, 0.88 + seed / 50) for seed in (0, 1)]
    table = trained_to_accuracy(full_trainings([*one, *two, *four], 0.89))
    told = replace(study, found=dict(study.found) | {"trained_to_accuracy": table})
    card, *_ = overview.cards(told, cells)
    # On four GPUs one seed of two falls short.
    assert str(card.headline) == "tuned/ddp, 2 × 512"
    assert str(card.text) == (
        "89 % test accuracy soonest: 3.00–3.10 s of training in 4 epochs, 2 seeds; 2.00× as fast "
        "as 1 GPU (95 %: 1.81–2.21). With start-up 23.1 s, on 1 GPU 26.1 s."
    )
    assert marks(told, cells) == ["fastest", "recommended"]
    named = told.trained_to_accuracy.assign(recipe="fast")
    here = replace(study, found=dict(study.found) | {"trained_to_accuracy": named})
    card, *_ = overview.cards(here, cells)
    assert str(card.headline) == "fast/ddp, 2 × 512" and str(card.text).endswith("26.1 s.")
    assert marks(here, cells) == ["recommended", "fastest"]


@pytest.mark.parametrize(
    ("speedups", "title"),
    [(1.2, "Faster on 4 GPUs"), (0.8, "Slower on 4 GPUs"), (None, "Not always faster on 4 GPUs")],
)
def test_the_second_card_says_whether_more_gpus_are_faster(study, cells, speedups, title):
    changed = cells.assign(efficiency=0.5)
    four = changed["gpus"] == 4
    values = [0.9, 1.2] * four.sum() if speedups is None else [speedups] * four.sum()
    changed.loc[four & changed["speedup"].notna(), "speedup"] = values[
        : (four & changed["speedup"].notna()).sum()
    ]
    assert overview.cards(study, changed)[1].title == title


def test_the_third_card_names_the_largest_part_or_power(study, cells):
    known = cells.assign(slower_share=0.8, unknown_share=0.0)
    limit = overview.cards(study, known)[2]
    assert "kernels help." in str(limit.text)
    limit = overview.cards(study, known.assign(power_capped_share=0.95))[2]
    assert limit.headline == "power" and str(limit.text).startswith(
        "At its limit 95 % of the time."
    )
    known = {"kernel_class": "products", "unit": "FLOP/s", "reached": 0.5}
    traced = {"step_classes": cells.assign(seconds=2e-3, least_seconds=1e-3, **known)}
    limit = overview.cards(replace(study, found={**study.found, **traced}), cells)[2]
    said = "products at 50 % of peak; idle 0 %. At these limits a step takes 50 % of its time."
    assert said in str(limit.text)


def test_a_study_of_which_nothing_was_timed_has_no_cards(study, cells):
    assert overview.cards(study, cells.assign(status="oom")) == []


def test_what_a_look_at_the_machine_found_is_one_line():
    found = {"severity": "bad", "host": "n1", "gpu": "GPU-0123456789", "message": "it is hot"}
    assert provenance.unfit(pd.DataFrame([found])) == "n1 GPU-01234567: it is hot."
    assert provenance.unfit(pd.DataFrame([found] * 3)).endswith(" And 2 more: machine.csv.")
    assert provenance.unfit(schema.frame("machine")) == ""


def test_the_map_has_a_row_for_each_configuration_and_shared_runs_once(cells):
    rows = dict(cell_map.map_rows(cells))
    assert "plain · ddp · 1 GPU" in rows and "plain · dp · 1 GPU" in rows
    cells.loc[(cells["gpus"] == 1) & (cells["strategy"] == "dp"), "shared"] = True
    rows = dict(cell_map.map_rows(cells))
    assert "plain · one GPU" in rows and "plain · dp · 1 GPU" not in rows
    cell = dict(cell_map.map_rows(cells))["fast · ddp · 4 GPUs"][512]
    assert cell["id"] == "cell-fast-ddp-4-512" and cell["marks"] == ["fastest"]
    shown, rating = cell["values"]["seconds"]
    assert (str(shown), rating) == ("0.320", 1.0)
    failed = rows["plain · ddp · 4 GPUs"][16384]
    assert failed["status"] == "cannot run" and set(failed["values"]) <= {"memory"}


def test_the_parts_of_a_bar_are_all_of_its_epoch(cells):
    for bar in cell_map.bars(cells):
        assert sum(float(part.text) for part in bar["parts"]) == pytest.approx(100, abs=0.1)


def test_a_share_below_zero_is_noise_wherever_it_is_printed(study, cells):
    below = cells.assign(communication_share=-0.02)
    rows = dict(cell_map.map_rows(below))
    values = [cell["values"] for cell in rows["fast · ddp · 4 GPUs"].values() if cell["values"]]
    assert {str(value["communication"][0]) for value in values} == {"< noise"}
    assert all(bar["parts"][3].text == "0.00" for bar in cell_map.bars(below))


def test_a_question_has_an_answer_of_a_short_sentence_or_none(study):
    given = questions.evaluate(study).answers
    assert list(given) == ["Q1", "Q2", "Q3.1", "Q3.2", "Q4", "B"]
    assert all(len(text.split()) <= 30 for text in given.values()), given
    assert given["B"] == (
        "Int8 weights, activations and biases: 62.50 % against 63.00 % in float32: "
        "−0.50 ± 0.17 points over 3 seeds."
    )


def test_how_many_gpus_are_worth_it_at_the_batch_that_learns_fastest_on_one(study, cells):
    found = scaling.how_many_gpus.rows(study, cells)
    fast = found[found["recipe"] == "fast"].set_index("gpus")
    # 128 is the reference; 1.76, 0.99 and 0.6 s on 1, 2 and 4 GPUs, 2.2 s on 4 with 32 each.
    assert set(fast["batch_size"]) == {128}
    assert fast["epoch_seconds"].tolist() == pytest.approx([1.76, 0.99, 0.6, 0.3])
    assert fast["gpu_seconds"].tolist() == pytest.approx([1.76, 1.98, 2.4, 2.4])
    assert fast["speedup"].tolist() == pytest.approx([1, 1.76 / 0.99, 1.76 / 0.6, 2 * 1.76 / 0.6])
    assert fast["efficiency"][8] == fast["efficiency"][4] == pytest.approx(1.76 / 0.6 / 4)
    assert fast["same_global_seconds"][4] == pytest.approx(2.2)
    assert fast["extrapolated"].tolist() == [False, False, False, True]
    # DataParallel takes 5.2 s on 4 GPUs, and 4 s on one.
    assert set(found["strategy"]) == {"ddp"}
