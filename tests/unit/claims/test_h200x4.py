"""What the stored study of 4 H200 says on question 4.2, as README quotes it."""

from pathlib import Path

import pandas as pd
import pytest

from scaling.claims import gaps, rates, techniques
from scaling.claims.claim_tables import ClaimTables
from scaling.core.records import read_convergence
from scaling.tables import schema
from scaling.tables.experiments import convergence
from scaling.tables.experiments import remedies as remedy_table

STUDY = Path(__file__).parents[3] / "studies/h200x4"
MARGIN = 0.02


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    """Its tables of remedies, from its records."""
    paths = sorted(STUDY.glob("convergence/*/*/runs.json"))
    records = [read_convergence(path) for path in paths]
    runs = convergence.runs(records)
    return {
        "convergence": runs,
        "loss_curves": convergence.curves(records),
        "remedies": remedy_table.remedies(runs, MARGIN),
    }


@pytest.fixture(scope="module")
def claims(made, tmp_path_factory):
    """The claims by id, from the tables as files have them."""
    folder, found = tmp_path_factory.mktemp("tables"), {}
    for name, table in made.items():
        schema.write(name, table, folder / f"{name}.csv")
        found[name] = schema.read(name, folder / f"{name}.csv")
    tables = ClaimTables("h200x4", found)
    return {each.id: each for module in (rates, gaps, techniques) for each in module.claims(tables)}


def figures(claim):
    return claim.evidence[0].figures


def test_all_remedies_are_there(made):
    table = made["remedies"]
    assert (table["remedy"].nunique(), table["global_batch"].nunique()) == (16, 5)
    assert (table["status"] == "ok").all() and (table["seeds"] == 3).all()


def test_linear_scaling_at_its_word_diverges_at_8192(claims):
    rule = claims["Q4.2-rule"]
    assert rule.verdict == "supported"
    assert (figures(rule)["global_batch"], figures(rule)["diverged_seeds"]) == (8192, 3)
    assert "It still learns at 512. At 2048 1 of 3 seeds diverged." in rule.sentence


def test_the_best_rate_grows_as_the_square_root_of_the_batch(claims):
    best = claims["Q4.2-best-rate"]
    assert best.verdict == "supported"
    rates = {128: 0.00625, 512: 0.0125, 2048: 0.025, 8192: 0.05}
    for batch, rate in rates.items():
        assert figures(best)[f"best_rate_at_{batch}"] == pytest.approx(rate)
    ends = [figures(best)[f"exponent{end}"] for end in ("", "_low", "_high")]
    assert ends == pytest.approx([1 / 2, 1 / 6, 5 / 6])
    assert "16× at 128" in best.sentence and "0.025 at 32768." in best.sentence


@pytest.mark.parametrize(
    ("batch", "verdict", "chosen", "accuracy", "highest", "accuracy_highest"),
    [
        (512, "undecided", "decay", 0.790, "decay", 0.790),
        (2048, "supported", "lars", 0.592, "precise_batch_norm", 0.709),
        (8192, "supported", "lars", 0.217, "precise_batch_norm", 0.499),
        (32768, "undecided", "lars", 0.100, "precise_batch_norm", 0.342),
    ],
)
def test_a_gap_is_left_at_equal_epochs(
    claims, batch, verdict, chosen, accuracy, highest, accuracy_highest
):
    gap = claims[f"Q4.2-gap-{batch}"]
    assert gap.verdict == verdict
    found = figures(gap)
    assert (found["remedy"], found["highest_remedy"]) == (chosen, highest)
    assert found["test_accuracy"] == pytest.approx(accuracy, abs=5e-4)
    assert found["highest_test_accuracy"] == pytest.approx(accuracy_highest, abs=5e-4)
    assert found["reference_test_accuracy"] == pytest.approx(0.818, abs=5e-4)
    # The one that training chose is behind everywhere, beyond the noise of its seeds.
    assert found["test_accuracy_high"] < 0


def test_what_leaves_two_gaps_open(claims):
    """Two remedies with scattered seeds, and sweeps that end too early."""
    some, most = (figures(claims[f"Q4.2-gap-{batch}"]) for batch in (512, 32768))
    assert set(some["remedies_not_behind"].split(", ")) == {"lars", "no_bn_decay"}
    assert (some["remedies_at_an_end"], most["remedies_not_behind"]) == ("none", "none")
    assert "precise_batch_norm" in most["remedies_at_an_end"]
    assert some["test_accuracy_difference"] == pytest.approx(-0.0278, abs=5e-5)


def test_equal_updates_close_the_gap_at_512(claims):
    equal = claims["Q4.2-equal-updates"]
    assert equal.verdict == "supported"
    assert figures(equal)["at_512_test_accuracy"] == pytest.approx(0.838, abs=5e-4)
    gap = [figures(equal)[f"gap_at_512_{end}"] for end in ("difference", "low", "high")]
    assert gap == pytest.approx([0.0734, 0.0335, 0.1133], abs=5e-5)


def test_running_statistics_hold_test_accuracy_down_at_32768(claims):
    lowered = claims["Q4.2-running-statistics"]
    assert lowered.verdict == "supported"
    gain = [figures(lowered)[f"gain_at_32768_{end}"] for end in ("difference", "low", "high")]
    assert gain == pytest.approx([0.2379, 0.2099, 0.2660], abs=5e-5)
    assert figures(lowered)["weight_of_start_at_32768"] == pytest.approx(0.9**10)


def test_a_warm_up_was_not_put_to_the_test(made):
    table = made["remedies"]
    warm_up = table[(table["remedy"] == "warmup") & (table["helps"] != "")]
    assert sorted(warm_up["global_batch"]) == [512, 2048, 8192, 32768]
    assert warm_up["same_as_compared"].all() and warm_up["nothing_to_warm_up"].all()
    assert set(warm_up["helps"]) == {"undecided"}


def test_what_helps_or_hurts(made):
    verdicts = made["remedies"].groupby("helps")["remedy"].unique()
    assert set(verdicts.index) == {"", "refuted", "undecided"}
    assert set(verdicts["refuted"]) == {"naive", "linear_warmup", "sqrt", "lars"}
    assert len(verdicts["undecided"]) == 10
