"""Question 2: the claims on scaling follow the ratios of the times."""

import pytest

from examples.claim_study import claims, set_time, study
from scaling.claims import speedup


@pytest.fixture(scope="module")
def example():
    return claims(speedup.claims, study())


def changed(change):
    return claims(speedup.claims, study(change))


@pytest.mark.parametrize(
    ("id", "seconds", "verdict"),
    [
        # On 4 GPUs 2.93 at least; course/dp takes 19.6 s with batch 32, one GPU 9.8 s.
        ("Q2-faster-fast-ddp", 0.33, "supported"),
        ("Q2-faster-course-dp", 0.33, "refuted"),
        # 1.24 / 1.25, each ± 2 %.
        ("Q2-faster-fast-ddp", 1.25, "unclear"),
    ],
)
def test_several_gpus_are_faster_than_one_with_every_batch(id, seconds, verdict):
    found = changed(lambda timing: set_time(timing, ("fast", "ddp", 4, 2048), seconds))
    assert found[id].verdict == verdict
    assert found[id].configuration.endswith("4 GPUs")


def test_a_fixed_global_batch_gives_another_speedup(example):
    # fast/ddp, 4 GPUs, batch 32: 7.2 / 2.2 = 3.27 and T(1, 128) = 1.76: 1.76 / 2.2 = 0.8.
    claim = example["Q2-global-batch-fast-ddp"]
    assert claim.verdict == "supported"
    figures = claim.evidence[0].figures
    assert figures["cell_speedup"] == pytest.approx(7.2 / 2.2)
    assert figures["cell_fixed_global_batch_speedup"] == pytest.approx(0.8)
    # At batch 512 1.24 / 0.32 = 3.88 against 4.12, each ± 4 %.
    assert (figures["cells_apart"], figures["cells_compared"]) == (2, 3)


def test_it_gives_the_same_where_one_gpu_is_as_fast_with_any_batch():
    def change(timing):
        for batch in (32, 128, 512, 2048):
            set_time(timing, ("fast", "ddp", 1, batch), 1.3)

    assert changed(change)["Q2-global-batch-fast-ddp"].verdict == "refuted"


def test_a_larger_batch_scales_better_worse_or_neither(example):
    # fast/ddp on 4 GPUs: 1.24 / 0.33 = 3.76 at 2048, 3.27 at 32.
    better = example["Q2-batch-fast-ddp"]
    assert better.verdict == "supported"
    assert "94 % with b\u00a0=\u00a02048 (speedup 3.61–3.91)" in better.sentence
    # course/ddp: 3.33 (3.20 to 3.47) at 512, 3.16 (3.04 to 3.29) at 32.
    assert example["Q2-batch-course-ddp"].verdict == "unclear"
    worse = changed(lambda timing: set_time(timing, ("fast", "ddp", 4, 2048), 0.62))
    assert worse["Q2-batch-fast-ddp"].verdict == "refuted"


def test_times_measured_once_leave_it_unclear():
    def change(timing):
        timing["count"] = 1

    assert {claim.verdict for claim in changed(change).values()} == {"unclear"}


def test_what_is_missing_is_named():
    tables = study()
    cells = tables["speedup"]
    cells.loc[cells["recipe"] == "fast", "speedup"] = None
    cells["fixed_global_batch_speedup"] = None
    tables["speedup"] = cells[cells["batch_size"] == 32]
    found = claims(speedup.claims, tables)
    assert set(found) == {
        "Q2-faster-fast-ddp",
        *(f"Q2-{kind}-course-{strategy}" for strategy in ("dp", "ddp") for kind in _KINDS),
    }
    missing = {claim.sentence for claim in found.values() if claim.verdict == "not measured"}
    assert "Add 128 to `grid.batch_sizes` to compare equal global batches." in missing
    assert len(missing) == 3


_KINDS = ("faster", "global-batch", "batch")
