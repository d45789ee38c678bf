"""Questions 1 to 3: claims on batch sizes, speedups, parts of an epoch, and the link."""

import pytest

from examples import stored
from examples.records import claims, study, timing_row
from scaling.claims import scaling
from scaling.tables.schema import StudyTables

ALONE = {32: 9.8, 128: 4.0, 512: 3.0}


def rows(times, gpus=1, **more):
    """Return a row for each batch size in `times`, with run times ± 2 %."""
    return [timing_row(gpus, b, own, spread=own / 50, **more) for b, own in times.items()]


@pytest.mark.parametrize(
    ("smallest", "runs", "verdict"),
    # 3.50 s with batch 128 is no clear difference from 3.55; nor is a time of one run.
    [(9.0, 3, "supported"), (1.0, 3, "refuted"), (3.55, 3, "in part"), (9.0, 1, "unclear")],
)
def test_larger_batches_are_judged_by_their_intervals(smallest, runs, verdict):
    made = study(*rows({32: smallest, 128: 3.5, 512: 1.5}, runs=runs))
    claim = claims(scaling.batches, made)["Q1-faster-plain"]
    assert claim.verdict == verdict
    tells = claim.sentence.endswith("; needs more runs.")
    assert tells == (verdict in ("in part", "unclear"))


@pytest.mark.parametrize(
    ("times", "text"),
    [
        # 1563, 100 and 50 steps of 2 ms, and 50,000 images of 20 µs.
        (
            {32: 4.126, 500: 1.2, 1000: 1.1},
            "a step takes 2.00 ms plus 20.0 µs per image; larger batches need fewer steps",
        ),
        ({32: 4.126, 500: 1.5, 1000: 0.2}, None),
    ],
)
def test_step_model_is_printed_where_it_fits(times, text):
    made = study(*rows(times))
    used = made["timing"].assign(loading_share=[0.1, 0.5, 0.8], idle_besides_share=[0.4, 0.0, 0.0])
    answer = scaling.batches(StudyTables("example", made | {"utilization": used})).text
    other = "is faster than b\u00a0=\u00a032 (12,118, GPU idle 40 %, waiting for the host)."
    assert answer.startswith(f"With plain {text}.") if text else other in answer
    waits = "From b\u00a0=\u00a0500 on, data wait takes 50–80 % of an epoch of plain."
    assert answer.endswith(waits)


def test_communication_is_a_share_of_training_or_named():
    known = stored.study("h200x2")
    ddp = known.communication.query("recipe == 'plain' and strategy == 'ddp' and batch_size != 64")
    share = 100 * (ddp["delay_seconds"] / ddp["training_seconds"]).max()
    ddp, dp, _ = scaling.parts(known).text.split("With ")[1:]
    assert ddp.startswith(f"plain/ddp communication takes 0.5–{share:.0f} % of the training time;")
    assert dp.startswith("plain/dp exposed messages take 0.2–0.9 %;")


@pytest.mark.parametrize(
    ("second", "runs", "words"),
    [
        (5.0, 3, "With plain, b = 512 (10,000 images/s) is faster than b = 128 (5,000)."),
        (9.9, 3, "With plain, b = 512 (5,051 images/s) and b = 128 (5,000) do not differ"),
        (9.9, 1, "b = 512 (5,051 images/s) was faster than b = 128 (5,000), without an interval."),
    ],
)
def test_batches_are_ranked_only_beyond_noise(second, runs, words):
    tables = study(*rows({128: 10, 512: second}, runs=runs, unit=""))
    answer = scaling.batches(StudyTables("example", tables))
    assert words in answer.text.replace("\xa0", " ")
    ran = tables["provenance"]
    tables["provenance"] = ran.assign(code=ran["batch_size"].astype(str))
    answer = scaling.batches(StudyTables("example", tables))
    assert "are not compared: other code measured the two." in answer.text


@pytest.mark.parametrize(
    ("seconds", "verdict", "cells"),
    [
        ((5.6, 2.2, 1.5), "supported", ""),
        ((19.0, 5.2, 2.97), "refuted", "Not for b = 32, 128; unclear for 512"),
        ((5.6, 2.2, 2.95), "in part", "Held for b = 32, 128; unclear for 512"),
    ],
)
def test_scaling_is_judged_by_the_ranges_of_speedups(seconds, verdict, cells):
    made = study(*rows(ALONE), *rows(dict(zip(ALONE, seconds, strict=True)), gpus=2))
    claim = claims(scaling.speedups, made)["Q2-faster-plain-ddp"]
    assert claim.verdict == verdict and claim.configuration.endswith("2 GPUs")
    assert cells in claim.sentence.replace("\u00a0", " ")
