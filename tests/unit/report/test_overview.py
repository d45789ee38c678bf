"""Cases of the first screen that no stored study has."""

import math
from dataclasses import replace

import pytest

from examples import stored
from scaling.core.grid import CELL_KEYS
from scaling.report import cells as of_page
from scaling.report import overview, planning
from scaling.tables import schema


@pytest.fixture(scope="module")
def flagship():
    return stored.study()


@pytest.fixture(scope="module")
def one_seed():
    """Return the rows of study h200x4 with one seed, one infeasible run and missing records."""
    return of_page.of_study(stored.study("h200x4"))


def test_recommended_training_has_the_shortest_whole_run(flagship):
    found = flagship.trained_to_accuracy
    trained = found.assign(speedup=math.nan)
    best = planning.recommended(flagship, of_page.of_study(flagship))
    assert (best.gpus, best.batch_size) == (1, 1024)
    one, two = found.sort_values("gpus").itertuples()
    assert one.run_seconds < two.run_seconds and two.training_seconds < one.training_seconds
    # The first training that two GPUs finish earlier, as a whole run.
    start = [row.run_seconds - row.training_seconds for row in (one, two)]
    epoch = [row.training_seconds / row.epochs for row in (one, two)]
    first = next(n for n in range(1, 100) if start[1] + n * epoch[1] < start[0] + n * epoch[0])
    assert planning.trainings(flagship)["break_even"].iloc[1] == first == 31
    failed = trained.assign(reached=[4, 5])
    other = replace(flagship, found=flagship.found | {"trained_to_accuracy": failed})
    assert planning.recommended(other, of_page.of_study(other)).gpus == 2


def test_equal_global_batches_break_even_with_start_up():
    study = stored.study("h200x2")
    rows = planning.how_many_gpus(study, of_page.of_study(study)).set_index(CELL_KEYS)
    one, two = rows.loc["tuned", "", 1, 128], rows.loc["tuned", "ddp", 2, 64]
    costs = study.costs.set_index(CELL_KEYS)["startup_cold_seconds"]
    assert two["other_seconds"] == costs["tuned", "ddp", 2, 64]
    whole = [[row.other_seconds + n * row.epoch_seconds for n in range(100)] for row in (one, two)]
    first = next(n for n in range(1, 100) if whole[1][n] < whole[0][n])
    assert two["break_even"] == first
    assert math.isnan(rows.loc["tuned", "ddp", 2, 128]["break_even"])
    models = stored.study("h200x2-models")
    rows = planning.how_many_gpus(models, of_page.of_study(models))
    assert not rows.duplicated(CELL_KEYS).any()


def test_nothing_is_recommended_without_accuracy_or_gpus(one_seed):
    study = stored.study("h200x4")
    assert planning.recommended(study, one_seed).recipe == "tuned"
    unknown = one_seed.assign(reference=False, test_accuracy=float("nan"), difference=float("nan"))
    assert planning.recommended(study, unknown) is None
    demo = stored.study("cpu")
    assert planning.recommended(demo, of_page.of_study(demo)) is None


def test_recipe_that_learned_far_less_is_not_marked(flagship):
    """`tuned` is the fastest recipe, but 36 points less accurate at every batch size."""
    none = {"trained_to_accuracy": schema.frame("trained_to_accuracy")}
    study = replace(flagship, found=flagship.found | none)
    cells = of_page.of_study(study)
    tuned = cells["recipe"] == "tuned"
    worse = cells.assign(test_accuracy=cells["test_accuracy"] - 0.36 * tuned)
    row = planning.recommended(study, worse)
    assert planning.recommended(study, cells).recipe == "tuned" and row.recipe == "plain"
    assert row.test_accuracy > worse["test_accuracy"].max() - 0.04


def test_factor_from_the_lab_is_of_machines_that_ran_both(flagship):
    runs = flagship.provenance.query("gpus == 1 and batch_size == 128")
    tuned = runs[runs["recipe"] == "tuned"].set_index("machine")["epoch_seconds"]
    lab = runs[runs["recipe"] == "plain"].set_index("machine")["epoch_seconds"]
    shared = [name for name in lab.index if name in tuned.index]
    assert 0 < len(shared) < len(lab)
    factors = [lab[name] / tuned[name].min() for name in shared]
    found = planning.from_the_lab(flagship)
    assert sorted(found["factor"]) == pytest.approx(sorted(factors), rel=0.02)
    card = overview.cards(flagship, of_page.of_study(flagship))[0]
    assert card.headline == f"{min(factors):.1f}–{max(factors):.1f}× as fast"


def test_saved_seconds_are_split_by_cause():
    study = stored.study("h200x2")
    rows = of_page.of_study(study)
    (card,) = [card for card in overview.cards(study, rows) if card.kind == "lab"]
    one = rows.query("gpus == 1 and batch_size == 128").set_index("recipe")
    saved = one.loc["plain", "epoch_seconds"] - one.loc["tuned", "epoch_seconds"]
    waits = one["loading_share"] * one["epoch_seconds"]
    assert f"{(waits['plain'] - waits['tuned']) / saved:.0%} {saved:.1f}" == "59% 5.9"
    parts = "59 % data wait, 8.1 % idle GPU, 33 % kernel time"
    assert f"Of 5.90 s saved per epoch: {parts}." in card.text.replace("\xa0", " ")
    for shares in (math.nan, rows["recipe"].map({"plain": 0.0, "tuned": 0.5})):
        changed = rows.assign(idle_besides_share=shares)
        assert not any("saved" in card.text for card in overview.cards(study, changed))


@pytest.mark.parametrize("verdict", ["unclear", "same"])
def test_speedup_within_noise_is_no_headline(flagship, verdict):
    cells = of_page.of_study(flagship)
    assert overview.cards(flagship, cells.assign(status="oom")) == []
    cells = cells.assign(verdict=verdict)
    cards = overview.cards(flagship, cells)
    card = next(one for one in cards if one.kind == "gpus")
    assert card.headline == "no difference shown"
    assert "no faster than one that these runs can show" in overview.lead(flagship, cells, cards)
