"""Question 2: the claims on strong, weak and fixed global batch follow the three ratios."""

import pytest

from examples import report_tables
from examples.claim_study import claims, set_time, with_times


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return claims(tmp_path_factory.mktemp("study"), report_tables.make())


def test_strong_and_weak_are_one_measurement_but_for_the_last_batch(example):
    # fast/ddp: 7.2 / 4.1 = 1.76 at batch 32 on 2 GPUs, 1.32 / 0.32 = 4.12 at 512 on 4; at 512 an
    # epoch has 79 steps on 1 GPU, 20 on 4: 80 / 79 more.
    claim = example["Q2-names-fast-ddp"]
    assert claim.verdict == "supported"
    assert "1.76–4.12 times as fast" in claim.sentence
    assert "1.76–4.18 times the images per second" in claim.sentence
    assert "in 8 cells the two differ by at most 1.3 %" in claim.sentence


def test_steps_that_do_not_shrink_with_the_gpus_refute_it(tmp_path):
    def change(timing):
        several = (timing["recipe"] == "fast") & (timing["gpus"] == 4)
        timing.loc[several, "iterations"] *= 4

    claim = claims(tmp_path, with_times(change))["Q2-names-fast-ddp"]
    assert claim.verdict == "refuted"
    assert "N GPUs did not take N times fewer steps" in claim.sentence
    assert claim.evidence[0].figures["outside"] == 4


def test_without_the_number_of_steps_it_is_undecided(tmp_path):
    tables = report_tables.make()
    tables["speedup"]["weak_speedup"] = None
    claim = claims(tmp_path, tables)["Q2-names-fast-ddp"]
    assert claim.verdict == "undecided" and "the number of steps is unknown" in claim.sentence


def test_a_fixed_global_batch_gives_another_speedup(example):
    # fast/ddp, 4 GPUs, batch 32: 7.2 / 2.2 = 3.27 and T(1, 128) = 1.76: 1.76 / 2.2 = 0.8.
    claim = example["Q2-global-batch-fast-ddp"]
    assert claim.verdict == "supported"
    assert "0.800× (efficiency 20 %) against one GPU with the same global batch of 128" in (
        claim.sentence
    )
    assert "3.27× (efficiency 82 %)" in claim.sentence
    assert "in 3 of 3 cells" in claim.sentence


def test_it_gives_the_same_where_one_gpu_is_as_fast_with_any_batch(tmp_path):
    def change(timing):
        for batch in (32, 128, 512, 2048):
            set_time(timing, ("fast", "ddp", 1, batch), 1.3)

    claim = claims(tmp_path, with_times(change))["Q2-global-batch-fast-ddp"]
    assert claim.verdict == "refuted"
    assert "no difference that can be told from noise in any of 3 cells" in claim.sentence


def test_without_the_global_batch_on_one_gpu_it_is_undecided(tmp_path):
    tables = report_tables.make()
    tables["speedup"]["fixed_global_batch_speedup"] = None
    claim = claims(tmp_path, tables)["Q2-global-batch-fast-ddp"]
    assert claim.verdict == "undecided" and "T(1, N·b)" in claim.sentence


def test_a_baseline_measured_once_leaves_it_undecided(tmp_path):
    def change(timing):
        timing["count"] = 1

    found = claims(tmp_path, with_times(change))
    assert found["Q2-global-batch-fast-ddp"].verdict == "undecided"
    assert found["Q2-batch-fast-ddp"].verdict == "undecided"


def test_a_larger_batch_scales_better_worse_or_neither(example, tmp_path):
    # fast/ddp on 4 GPUs: 1.24 / 0.33 = 3.76 at 2048, 3.27 at 32.
    better = example["Q2-batch-fast-ddp"]
    assert better.verdict == "supported"
    assert "efficiency 94 % (3.76×, 3.61–3.91) with b\u00a0=\u00a02048" in better.sentence
    # course/ddp: 3.33 (3.20 to 3.47) at 512, 3.16 (3.04 to 3.29) at 32.
    assert example["Q2-batch-course-ddp"].verdict == "undecided"

    def change(timing):
        set_time(timing, ("fast", "ddp", 4, 2048), 0.62)

    worse = claims(tmp_path, with_times(change))["Q2-batch-fast-ddp"]
    assert worse.verdict == "refuted"
    assert "scale worse, not better, with a larger batch" in worse.sentence


def test_without_single_gpu_times_nothing_is_said_of_scaling(tmp_path):
    tables = report_tables.make()
    tables["speedup"]["speedup"] = None
    found = claims(tmp_path, tables)
    assert found["Q2-fast-ddp"].verdict == "undecided"
    assert "that of one GPU at the same batch size" in found["Q2-fast-ddp"].sentence


def test_a_study_on_one_gpu_has_no_scaling(tmp_path):
    tables = report_tables.make()
    for name in ("speedup", "communication", "bandwidth"):
        tables[name] = tables[name][tables[name]["gpus"] == 1]
    found = claims(tmp_path, tables)
    for question in ("Q2", "Q3.1", "Q3.2"):
        assert found[question].verdict == "undecided"
        assert "no cell on several GPUs" in found[question].sentence
