"""The first screen where stored studies, whose pages are snapshots, do not show what it says."""

from dataclasses import replace

import pandas as pd
import pytest

from examples import stored
from scaling.report import cells as of_page
from scaling.report import overview, provenance
from scaling.tables import schema


@pytest.fixture(scope="module")
def flagship():
    return stored.study()


@pytest.fixture(scope="module")
def one_seed():
    """The cells of four H200, one seed; a cell that was not feasible, and some without a record."""
    return of_page.of_study(stored.study("h200x4"))


def test_the_map_frames_what_is_recommended_and_the_fastest_that_learned(flagship, one_seed):
    cells = of_page.of_study(flagship)
    rows = of_page.map_rows(cells, overview.marks(flagship, cells))
    # tuned on 2 × 8192 is the fastest of all, and learns 10 %.
    assert rows["to_accuracy · ddp · 2 GPUs"][512]["marks"] == ["recommended"]
    assert rows["tuned · one GPU"][128]["marks"] == ["fastest that learned as well, to 2 points"]
    assert rows["plain · ddp · 2 GPUs"][512]["marks"] == ["changing"]
    study = stored.study("h200x4")
    assert list(overview.marks(study, one_seed)) == ["fastest that learned as well, to 2 points"]
    unknown = one_seed.assign(reference=False, test_accuracy=float("nan"), difference=float("nan"))
    assert list(overview.marks(study, unknown)) == ["fastest"]


def test_recipe_that_learned_far_less_is_not_marked(flagship):
    """`tuned` is the fastest; a third less accurate at every size, it is as good as itself only."""
    cells = of_page.of_study(flagship)
    tuned = cells["recipe"] == "tuned"
    worse = cells.assign(test_accuracy=cells["test_accuracy"] - 0.36 * tuned)
    row = overview.fastest_that_learned(worse)
    assert overview.fastest_that_learned(cells).recipe == "tuned" and row.recipe == "plain"
    assert row.test_accuracy > worse["test_accuracy"].max() - 0.04


def test_an_accuracy_of_several_seeds_is_believed_before_that_of_one(flagship):
    none = {"trained_to_accuracy": schema.frame("trained_to_accuracy")}
    without = replace(flagship, found=flagship.found | none)
    cells = of_page.of_study(without)
    place = (cells["recipe"] == "tuned") & (cells["gpus"] == 2) & (cells["batch_size"] == 512)
    for seeds, best in ((1, "tuned, 1 × 128"), (3, "tuned/ddp, 2 × 512")):
        cells.loc[place, ["as_well", "test_accuracy_count"]] = [True, seeds]
        card, *_ = overview.cards(without, cells)
        assert (card.title, card.headline.striptags()) == ("Run this", best)


@pytest.mark.parametrize(
    ("verdicts", "title"),
    [(["faster"], "Faster"), (["slower"], "Slower"), (["same", "faster"], "Not always faster")],
)
def test_the_second_card_says_whether_more_gpus_are_faster(flagship, verdicts, title):
    cells = of_page.of_study(flagship)
    assert overview.cards(flagship, cells.assign(status="oom")) == []
    several = (cells["gpus"] == 2) & cells["speedup"].notna()
    cells.loc[several, "verdict"] = (verdicts * several.sum())[: several.sum()]
    cells = cells.assign(efficiency=0.5)
    assert overview.cards(flagship, cells)[1].title == f"{title} on 2 GPUs"


def test_what_a_look_at_the_machine_found_is_one_line():
    found = {"severity": "bad", "host": "n1", "gpu": "GPU-0123456789", "message": "it is hot"}
    assert provenance.unfit(pd.DataFrame([found])) == "n1 GPU-01234567: it is hot."
    assert provenance.unfit(pd.DataFrame([found] * 3)).endswith(" And 2 more: machine.csv.")
    assert provenance.unfit(schema.frame("machine")) == ""


def test_a_cell_has_a_rating_and_a_bar_of_all_its_epoch_where_noise_below_zero_is_nothing(one_seed):
    below = one_seed.assign(communication_share=-0.02)
    cells = of_page.map_rows(below, {})["tuned · ddp · 4 GPUs"]
    shown, rating = cells[2048]["values"]["epoch_seconds"]
    assert (str(shown), rating) == ("0.132", 1.0)
    assert str(cells[2048]["values"]["communication_share"][0]) == "< noise"
    (row,) = below[below["status"] == "ok"].tail(1).itertuples()
    assert of_page.parts(row)["messages alone"].text == "0.00"
    for row in of_page.of_study(stored.study("cpu")).itertuples():
        widths = [float(part.text) for part in of_page.parts(row).values()]
        assert not widths or sum(widths) == pytest.approx(100, abs=0.1)
