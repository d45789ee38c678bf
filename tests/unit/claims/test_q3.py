"""Question 3: the claims on the parts of an epoch and on the link follow the estimates."""

import pytest

from examples.claim_study import claims, instrumented, set_time, study, told
from scaling.claims import q3_1, q3_2
from scaling.tables.communication import communication, readings
from scaling.tables.epoch_parts import epoch_parts

B = "b\u00a0=\u00a0"
FALLS = "Q3.1-falls-plain-ddp"


def test_the_preferred_estimate_alone_decides():
    # By subtraction 14 to 21 % with b=32, 12 to 16 % with b=512; read 0.31 of 3.1 s and 0.018 of
    # 0.9 s, ± 0.009 s; the traced kernels 0.248 and 0.27 s.
    read = {32: (0.31, 0.301, 0.319), 512: (0.018, 0.009, 0.027)}
    traced = {batch: (value, value, value) for batch, value in ((32, 0.248), (512, 0.27))}
    tables = instrumented(study(), profiler=traced, without_communication=read)
    claim = claims(q3_1.answer, tables)[FALLS]
    # At 128 there is the subtraction alone: 13 to 20 %.
    assert claim.verdict == "in part" and told(claim) == "rs"
    # 0.1 ± 0.009 / 3.1
    assert claim.sentence.startswith(f"1.0–3.0 % with {B}512, 9.7–10 % with {B}32.")


def test_a_larger_batch_communicates_less_more_or_neither():
    example = claims(q3_1.answer, study())
    # 17 to 28 % at 128, 14 to 22 % at 32.
    assert told(example["Q3.1-falls-fast-ddp"]) == "rss"
    # 0.156 to 0.194 s of 1.25 at 128, 0.498 to 0.603 s of 3.1 at 32.
    assert told(example[FALLS]) == "ss"
    slow = study(lambda timing: set_time(timing, ("fast", "ddp", 4, 2048), 0.62))
    assert told(claims(q3_1.answer, slow)["Q3.1-falls-fast-ddp"]) == "rsr"


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.4, 0.2, 0.1, 0.3), "supported"),
        # 40 to 60 %, as 20 % are not known.
        ((0.3, 0.1, 0.4, 0.2), "unclear"),
        ((0.3, 0.1, 0.6, 0.0), "refuted"),
        ((0.3, None, None, 0.7), "not measured"),
    ],
)
def test_computing_is_what_the_parts_of_an_epoch_say(shares, verdict):
    tables = study()
    names = ["utilization", "slower_share", "idle_share", "unknown_share"]
    parts = dict(zip(names, shares, strict=True)) | {"communication_share": 0, "loading_share": 0}
    tables["utilization"] = tables["timing"].assign(**parts)
    claim = claims(q3_1.answer, tables)["Q3.1-computing-plain-ddp"]
    assert claim.verdict == verdict
    if verdict == "refuted":
        assert f"{B}512: 40 % computing, 60 % GPU idle." in claim.sentence


@pytest.mark.parametrize("gpus", [[1], [2, 4]])
def test_nothing_rests_on_a_time_without_loading_below_the_epoch_in_memory(gpus):
    tables = study()
    memory = tables["in_memory"]
    memory.loc[memory["gpus"].isin(gpus), "in_memory_epoch_seconds"] *= 3
    tables["communication"] = communication(tables["timing"], memory, readings([]))
    assert tables["communication"]["communication_seconds"].isna().all()
    tables["epoch_parts"] = epoch_parts(tables["timing"], memory, tables["communication"])
    found = claims(q3_1.answer, tables)
    assert {claim.verdict for claim in found.values()} == {"not measured"}
    # An instrument is believed as before.
    read = {32: (0.31, 0.31, 0.31), 512: (0.009, 0.009, 0.009)}
    tables = instrumented(tables, without_communication=read)
    assert claims(q3_1.answer, tables)[FALLS].verdict == "supported"


@pytest.mark.parametrize(
    ("estimate", "utilizations", "verdict", "best"),
    [
        ("profiler", (0.6, 0.8), "supported", 80),
        ("profiler", (0.2, 0.8), "in part", 80),
        ("profiler", (0.2, 0.3), "refuted", 30),
        # A subtraction counts more than communication, so it cannot show that gradients are slow.
        ("subtraction_without_loading", (0.2, 0.3), "unclear", 30),
        # More than the peak is no bandwidth.
        ("profiler", (0.2, 1.4), "refuted", 20),
    ],
)
def test_each_cell_tells_how_much_of_the_link_is_used(estimate, utilizations, verdict, best):
    """On a link of 100 GB/s between 2 GPUs, used to these shares with batch 32, 64, …"""
    timing = study()["timing"]
    rows = timing[timing["gpus"] == 2].head(len(utilizations))
    rows = rows.assign(estimate=estimate, peak_gb_per_s=100.0, utilization=utilizations)
    tables = {"bandwidth": rows.assign(bandwidth_gb_per_s=0.0)}
    claim = claims(q3_2.answer, tables)["Q3.2-travelling-plain-dp"]
    assert claim.verdict == verdict and f"GB/s ({best} %) with" in claim.sentence
