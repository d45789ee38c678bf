"""Cases of the first screen that no stored study has."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from examples import stored
from examples.records import full_training
from scaling.claims.claim import Findings
from scaling.core.grid import CELL_KEYS
from scaling.report import cells as of_page
from scaling.report import overview, planning
from scaling.report.table import merged, over_machines
from scaling.report.views import missing
from scaling.tables import schema
from scaling.tables.accuracy import trained_to_accuracy
from scaling.tables.noise import NO_TIME, OTHER_CODE

FLAGSHIP = stored.study()


def having(**tables):
    """Return the flagship with other tables."""
    return replace(FLAGSHIP, found=FLAGSHIP.found | tables)


@pytest.fixture
def untrained():
    """Return the flagship without trainings to an accuracy, and without recipes of one GPU."""
    names = ("timing", "provenance")
    found = {name: FLAGSHIP.found[name].query("recipe in ('plain', 'tuned')") for name in names}
    return having(**found, trained_to_accuracy=schema.frame("trained_to_accuracy"))


def test_recommended_training_has_the_shortest_whole_run():
    """Start-up takes 12 s on one GPU and 19 s on two, which train 1.64 times as fast."""
    records = [
        full_training(gpus, seed, seconds, 0.9) | {"run_seconds": seconds + start}
        for gpus, seconds, start in ((1, 6.1, 12), (2, 3.7, 19))
        for seed in range(5)
    ]
    found = trained_to_accuracy(records, 0.89)
    study = having(trained_to_accuracy=found)
    best = planning.recommended(study, of_page.of_study(study))
    assert (best.gpus, best.batch_size) == (1, 1024)
    cold = found.assign(run_seconds=math.nan, run_cold_seconds=40.0)
    compiled = having(trained_to_accuracy=cold)
    (*_, card) = overview.cards(compiled, of_page.of_study(compiled))
    assert card.text.striptags().endswith(" s of training, 40.0 s when compiling.")
    one, two = found.sort_values("gpus").itertuples()
    assert one.run_seconds < two.run_seconds and two.training_seconds < one.training_seconds
    # The first training that two GPUs finish earlier, as a whole run.
    start = [row.run_seconds - row.training_seconds for row in (one, two)]
    epoch = [row.training_seconds / row.epochs for row in (one, two)]
    first = next(n for n in range(1, 100) if start[1] + n * epoch[1] < start[0] + n * epoch[0])
    row = planning.trainings(study).iloc[1]
    assert row.break_even_min == row.break_even_max == first == 12
    other = having(trained_to_accuracy=found.assign(speedup=math.nan, reached=[4, 5]))
    assert planning.recommended(other, of_page.of_study(other)).gpus == 2


def test_break_even_is_one_range_over_machines_everywhere(untrained):
    """Start-ups of 1 × 128 and 2 × 64 on the machines: 18.3 and 18.3 s, 13.8 and 17.5, 14.7 and
    16.3. The machines had compiled different parts of the code before."""
    study, cells = untrained, of_page.of_study(untrained)
    rows = planning.how_many_gpus(study, cells).set_index(CELL_KEYS)
    two = rows.loc["tuned", "ddp", 2, 64]
    assert (two["break_even_min"], two["break_even_max"]) == (1, 27)
    assert math.isnan(rows.loc["tuned", "ddp", 2, 128]["break_even_min"])
    unsure = rows.loc["plain", "ddp", 2, 64]
    assert unsure["fixed_global_batch_speedup_low"] < 1 and math.isnan(unsure["break_even_min"])
    once = planning.how_many_gpus(study, cells.assign(fixed_global_batch_speedup_low=math.nan))
    known = once.dropna(subset="break_even_min")
    assert known["recipe"].tolist() == ["tuned"] and known["batch_size"].tolist() == [64]
    cards = overview.cards(study, cells)
    for text in (overview.lead(study, cells, cards), cards[-1].text):
        assert "from 27 epochs on at the latest (1–27 by machine)" in text.striptags()
    models = stored.study("h200x2-models")
    rows = planning.how_many_gpus(models, of_page.of_study(models))
    assert not rows.duplicated(CELL_KEYS).any()


def test_tables_over_machines_take_medians_of_machines():
    rows = [(8, "a", 1.0), (8, "a", 2.0), (8, "a", 3.0), (8, "b", 6.0), (16, "b", 5.0)]
    sent = pd.DataFrame(rows, columns=["message_bytes", "machine", "seconds"])
    sent = sent.assign(seconds_max=sent["seconds"], correct=sent["seconds"] < 6)
    found = over_machines(sent, "message_bytes")
    assert found["seconds"].tolist() == [4, 5] and found["seconds_max"].tolist() == [6, 5]
    assert found["correct"].tolist() == [False, True] and found["merged"].tolist() == [4, 1]
    note = merged("Seconds")
    assert note(found).startswith("Seconds are medians") and note(found.tail(1)) == ""


def test_nothing_is_recommended_without_accuracy_or_gpus():
    """Study h200x4 has one seed, one infeasible run and missing records."""
    study = stored.study("h200x4")
    one_seed = of_page.of_study(study)
    assert planning.recommended(study, one_seed).recipe == "tuned"
    unknown = one_seed.assign(reference=False, test_accuracy=float("nan"), difference=float("nan"))
    assert planning.recommended(study, unknown) is None
    demo = stored.study("cpu")
    assert planning.recommended(demo, of_page.of_study(demo)) is None


def test_recipe_that_learned_far_less_is_not_marked(untrained):
    """`tuned` is the fastest recipe, but 36 points less accurate at every batch size."""
    study, cells = untrained, of_page.of_study(untrained)
    tuned = cells["recipe"] == "tuned"
    worse = cells.assign(test_accuracy=cells["test_accuracy"] - 0.36 * tuned)
    row = planning.recommended(study, worse)
    assert planning.recommended(study, cells).recipe == "tuned" and row.recipe == "plain"
    assert row.test_accuracy > worse.query("recipe == 'plain'")["test_accuracy"].max() - 0.1
    # Of equally accurate rows, one of several seeds comes before a faster one.
    alike = cells.assign(test_accuracy=cells["test_accuracy"] - 0.06 * tuned)
    assert planning.recommended(study, alike).recipe == "tuned"
    alike["test_accuracy_count"] += ~tuned
    assert planning.recommended(study, alike).recipe == "plain"


def test_missing_speedup_names_its_reason():
    cells, nothing = of_page.of_study(FLAGSHIP), Findings("", {}, [])
    title = "Q2: How much faster are more GPUs? Weak or strong scaling?"
    needs = "grid.gpus with 1 and 2, on one machine"
    for note, shown in ((OTHER_CODE, OTHER_CODE), (NO_TIME, needs)):
        study = having(speedup=FLAGSHIP.speedup.assign(note=note))
        assert dict(missing(study, cells, nothing))[title] == shown


def test_factor_from_the_lab_is_of_machines_that_ran_both():
    runs = FLAGSHIP.provenance.query("recipe != 'tuned' or repeat != 2")
    study = having(provenance=runs)
    runs = runs.query("gpus == 1 and batch_size == 128")
    tuned = runs[runs["recipe"] == "tuned"].set_index("machine")["epoch_seconds"]
    lab = runs[runs["recipe"] == "plain"].set_index("machine")["epoch_seconds"]
    shared = [name for name in lab.index if name in tuned.index]
    assert 0 < len(shared) < len(lab)
    factors = [lab[name] / tuned[name].min() for name in shared]
    found = planning.from_the_lab(study)
    assert sorted(found["factor"]) == pytest.approx(sorted(factors), rel=0.02)
    card = overview.cards(study, of_page.of_study(study))[0]
    assert card.headline == f"{min(factors):.1f}–{max(factors):.0f}× as fast"
    failed = FLAGSHIP.provenance.assign(epoch_seconds=math.nan)
    assert planning.from_the_lab(having(provenance=failed)).empty


def test_card_names_what_each_change_of_a_recipe_brings():
    """Two machines ran the recipes between, one of them `tuned` as well."""
    card = overview.cards(FLAGSHIP, of_page.of_study(FLAGSHIP))[0]
    assert "Speedup over the recipe before (1 to 2 machines): images_on_gpu 1.67–1.71×" in card.text
    ladder = FLAGSHIP.provenance.query("gpus == 1 and batch_size == 128")
    runs = {(row.recipe, row.repeat): row.epoch_seconds for row in ladder.itertuples()}
    low, high = (runs["images_on_gpu", repeat] / runs["bf16", repeat] for repeat in (7, 6))
    assert low < high and f"bf16 {low:#.3g}–{high:#.3g}×" in card.text
    assert card.text.endswith(f" tuned {runs['captured', 7] / runs['tuned', 7]:#.3g}×.")
    less = FLAGSHIP.provenance.query("recipe != 'captured' or batch_size != 128")
    left = planning.changes(having(provenance=less)).query("batch_size == 128").set_index("recipe")
    assert left["factor"]["tuned"] == runs["compiled", 7] / runs["tuned", 7]
    assert "captured" not in left.index
    two = FLAGSHIP.provenance.query("recipe in ('plain', 'tuned')")
    assert planning.changes(having(provenance=two)).empty


@pytest.mark.parametrize("verdict", ["unclear", "same"])
def test_speedup_within_noise_is_no_headline(verdict):
    cells = of_page.of_study(FLAGSHIP)
    assert overview.cards(FLAGSHIP, cells.assign(status="oom")) == []
    cells = cells.assign(verdict=verdict, note="of whole runs")
    cards = overview.cards(FLAGSHIP, cells)
    card = next(one for one in cards if one.kind == "gpus")
    assert card.headline == "no difference shown"
    lead = overview.lead(FLAGSHIP, cells, cards)
    assert "no faster than one that these runs can show" in lead and ": of whole runs." in lead


def test_card_of_gpus_is_of_a_recipe_that_ran_on_several():
    """Of `tuned`, the fastest recipe, one GPU is left: the card is of another recipe."""
    study = stored.study("slurm-sockets")
    cells = of_page.of_study(study).query("recipe == 'plain' or gpus == 1")
    (card,) = (one for one in overview.cards(study, cells) if one.kind == "gpus")
    assert card.title == "2 GPUs instead of 1, plain/ddp"
    assert card.headline.striptags() == "1.56× as fast"
