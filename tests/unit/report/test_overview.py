"""The first screen: what to run, how it scales, what limits it, and the map."""

import re
from dataclasses import replace

import pandas as pd
import pytest

import claims_evaluate
from examples import stored
from scaling.claims.claim import label
from scaling.report import cells as of_page
from scaling.report import overview, provenance
from scaling.tables import schema


@pytest.fixture(scope="module")
def flagship():
    return stored.study()


@pytest.fixture(scope="module")
def one_seed():
    """Four H200, one seed; a cell that was not feasible, and some without a record."""
    return stored.study("h200x4")


def test_a_study_of_int8_alone_names_machines_and_commits_of_its_records(flagship):
    made = {"cpu": ["", "EPYC"], "commit": ["", "0123456789abcdef+changes"]}
    resnet = {"device": ["NVIDIA H200"], "commit": ["0011223344556677"]}
    tables = {"quantization": pd.DataFrame(made), "quantization_resnet": pd.DataFrame(resnet)}
    empty = {name: schema.frame(name) for name in ("remedies", "trained_to_accuracy", "sampler")}
    timing = flagship.timing.assign(status="missing")
    alone = replace(flagship, found={**empty, **tables, "timing": timing})
    said = "Int8 quantization alone · EPYC · NVIDIA H200 · commit "
    said += "0123456789ab with uncommitted changes, 001122334455"
    assert provenance.summary(alone, timing, None) == said


@pytest.mark.parametrize(
    ("study", "run", "scales", "limit", "trust"),
    [
        (
            "h100x2",
            "Run this: to_accuracy/ddp, 2 x 512, 89 % test accuracy soonest: 3.69-3.72 s of "
            "training in 10 epochs, 5 seeds; 1.64x as fast as 1 GPU at the same global batch",
            "Faster on 2 GPUs: 1.86-1.97x, tuned/ddp: 93-99 % efficient",
            "The limit is: kernels below the GPU's peak, 70 % of an epoch of tuned, 1 x 128",
            "Trust: 0.6 %, from shortest to longest run of tuned, median; plain: 43 %",
        ),
        (
            # Random images: nothing is recommended by accuracy.
            "h200x2-models",
            "Fastest: tuned/ddp, 2 x 256, 0.605 s an epoch",
            "Faster on 2 GPUs: 1.86-1.92x, tuned/ddp: 93-96 % efficient",
            "The limit is: power, at its limit 100 % of the time",
            "Trust: 5.6 %, from shortest to longest epoch of tuned, median; plain: 7.4 %",
        ),
        (
            "h200x1",
            "Fastest that learned, one seed: tuned, 1 x 128, 0.785 s an epoch: the fastest that "
            "learns (60 %)",
            "Scaling: not measured, no cell on several GPUs has a speedup",
            "The limit is: kernels below the GPU's peak, 66 % of an epoch of tuned, 1 x 128",
            "Trust: 1.7 %, from shortest to longest epoch of tuned, median; plain: 23 %",
        ),
    ],
)
def test_the_cards_say_what_to_run_whether_it_scales_its_limit_and_how_sure(
    study, run, scales, limit, trust
):
    tables = stored.study(study)
    lines = overview.headline(tables, of_page.of_study(tables)).splitlines()
    assert lines[:4] == [run, scales, limit, trust]
    assert lines[4].startswith("Not measured: ")


def test_the_map_frames_what_is_recommended_and_the_fastest_that_learned(flagship, one_seed):
    cells = of_page.of_study(flagship)
    marks = overview.marks(flagship, cells)
    # tuned on 2 × 8192 is the fastest of all, and learns 10 %.
    assert {name: label(row) for name, row in marks.items()} == {
        "recommended": "to_accuracy/ddp, 2 × 512",
        "fastest that learned as well, to 2 points": "tuned, 1 × 128",
    }
    rows = of_page.map_rows(cells, marks)
    assert rows["to_accuracy · ddp · 2 GPUs"][512]["marks"] == ["recommended"]
    assert rows["tuned · one GPU"][128]["marks"] == ["fastest that learned as well, to 2 points"]
    assert rows["plain · ddp · 2 GPUs"][512]["marks"] == ["changing"]
    cells = of_page.of_study(one_seed)
    assert list(overview.marks(one_seed, cells)) == ["fastest that learned as well, to 2 points"]
    unknown = cells.assign(reference=False, test_accuracy=float("nan"), difference=float("nan"))
    assert list(overview.marks(one_seed, unknown)) == ["fastest"]
    card, *_ = overview.cards(one_seed, unknown)
    assert card.text.striptags().endswith(" s an epoch. No accuracy is known.")


def test_the_card_of_the_limit_tells_what_the_kernels_of_a_step_reach(flagship):
    cell = {"recipe": "tuned", "strategy": "ddp", "gpus": 1, "batch_size": 128}
    reached = {"products": 0.52, "element-wise": 0.81, "idle": float("nan")}
    rows = [cell | {"kernel_class": kind, "reached": share} for kind, share in reached.items()]
    traced = flagship.found | {"step_classes": schema.frame("step_classes", rows)}
    cards = overview.cards(replace(flagship, found=traced), of_page.of_study(flagship))
    told = cards[2].text.striptags()
    assert "Convolutions reach 52 % of the peak." in told
    assert told.endswith("Element-wise kernels reach 81 % of the memory’s bandwidth.")


def test_a_recipe_trained_apart_is_told_by_what_it_adds_to_another(flagship):
    said = dict(provenance.recipes(flagship))
    assert said["plain"] == "PyTorch’s standard parts: loader workers 2, precision tf32"
    added = "as tuned, with nesterov, optimizer Muon at rate 0.12, .*; to 89 %, trained apart"
    assert re.fullmatch(added, said["to_accuracy"])


def test_an_accuracy_of_several_seeds_is_believed_before_that_of_one(flagship):
    none = {"trained_to_accuracy": schema.frame("trained_to_accuracy")}
    without = replace(flagship, found=flagship.found | none)
    cells = of_page.of_study(without)
    card, *_ = overview.cards(without, cells)
    # It learns as its reference, 128 images on one GPU, by several seeds; larger batches do not.
    assert (card.title, card.headline.striptags()) == ("Run this", "tuned, 1 × 128")
    place = (cells["recipe"] == "tuned") & (cells["gpus"] == 2) & (cells["batch_size"] == 512)
    alone = cells.copy()
    alone.loc[place, ["difference", "test_accuracy_count"]] = [0.0, 1]
    card, *_ = overview.cards(without, alone)
    assert card.headline.striptags() == "tuned, 1 × 128"
    alone.loc[place, "test_accuracy_count"] = 3
    card, *_ = overview.cards(without, alone)
    assert card.headline.striptags() == "tuned/ddp, 2 × 512"


@pytest.mark.parametrize(
    ("speedups", "title"),
    [(1.2, "Faster on 2 GPUs"), (0.8, "Slower on 2 GPUs"), (None, "Not always faster on 2 GPUs")],
)
def test_the_second_card_says_whether_more_gpus_are_faster(flagship, speedups, title):
    cells = of_page.of_study(flagship)
    assert overview.cards(flagship, cells.assign(status="oom")) == []
    cells = cells.assign(efficiency=0.5)
    several = (cells["gpus"] == 2) & cells["speedup"].notna()
    values = [0.9, 1.2] * several.sum() if speedups is None else [speedups] * several.sum()
    cells.loc[several, "speedup"] = values[: several.sum()]
    assert overview.cards(flagship, cells)[1].title == title


def test_what_a_look_at_the_machine_found_is_one_line():
    found = {"severity": "bad", "host": "n1", "gpu": "GPU-0123456789", "message": "it is hot"}
    assert provenance.unfit(pd.DataFrame([found])) == "n1 GPU-01234567: it is hot."
    assert provenance.unfit(pd.DataFrame([found] * 3)).endswith(" And 2 more: machine.csv.")
    assert provenance.unfit(schema.frame("machine")) == ""


def test_a_cell_of_the_map_has_its_page_and_a_rating(one_seed):
    cell = of_page.map_rows(of_page.of_study(one_seed), {})["tuned · ddp · 4 GPUs"][2048]
    assert cell["id"] == "cell-tuned-ddp-4-2048"
    shown, rating = cell["values"]["epoch_seconds"]
    assert (str(shown), rating) == ("0.132", 1.0)


def test_the_parts_of_a_bar_are_all_of_its_epoch_and_noise_below_zero_is_said(one_seed):
    whole = stored.study("cpu")
    for bar in of_page.bars(of_page.of_study(whole)):
        assert sum(float(part.text) for part in bar["parts"].values()) == pytest.approx(
            100, abs=0.1
        )
    below = of_page.of_study(one_seed).assign(communication_share=-0.02)
    rows = of_page.map_rows(below, {})
    values = [cell["values"] for cell in rows["tuned · ddp · 4 GPUs"].values() if cell["values"]]
    assert {str(value["communication_share"][0]) for value in values} == {"< noise"}
    assert all(bar["parts"]["exposed communication"].text == "0.00" for bar in of_page.bars(below))


@pytest.mark.parametrize("study", ["h100x2", "h200x4", "cpu", "quantization-cifar10"])
def test_an_answer_is_a_short_sentence(study):
    given = claims_evaluate.evaluate(stored.study(study)).answers
    assert given and all(len(text.split()) <= 30 for text in given.values()), given
