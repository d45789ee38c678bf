"""Claims on questions 5 to 7: what supports them, what contradicts them, what leaves them open."""

import pandas as pd
import pytest
import synchronization_records as made

from scaling import result_tables, tables
from scaling.claims import buffers, messages, set_epoch
from scaling.claims.claim_tables import ClaimTables
from scaling.paired import paired_interval
from scaling.synchronization.buffers_table import buffers as buffers_table
from scaling.synchronization.collectives_table import collectives
from scaling.synchronization.sampler_table import accuracy, orders

TABLES = {
    "sampler": orders,
    "sampler_accuracy": accuracy,
    "collectives": collectives,
    "buffers": buffers_table,
}


@pytest.fixture
def claims(tmp_path):
    """A function that makes the claims of a document, through the files of its tables, by id."""

    def make(document):
        found = {}
        for name, table in TABLES.items():
            tables.write(table([document] if document else []), tmp_path / f"{name}.csv")
            found[name] = result_tables.read(name, tmp_path / f"{name}.csv")
        whole = ClaimTables("demo", found)
        modules = (set_epoch, messages, buffers)
        return {claim.id: claim for module in modules for claim in module.claims(whole)}

    return make


def accuracies(document, pairs):
    """Test accuracies (with, without) of each seed, of rank 0."""
    trainings = [one for one in document["trainings"] if one["buffers"] == "broadcast"]
    for one in trainings:
        one["ranks"][0]["test_accuracy"] = pairs[one["seed"]][0 if one["set_epoch"] else 1]
    return document


def messages_of(document, way):
    return next(one for one in document["steps"] if one["way"] == way)


def test_without_a_record_every_claim_is_undecided_and_says_what_is_missing(claims):
    found = claims(None)
    assert len(found) == 4 + 6 + 6
    for claim in found.values():
        assert claim.verdict == "undecided", claim
        assert any(word in claim.sentence for word in ("cannot be said", "not recorded", "was not"))


def test_on_a_cpu_only_what_needs_gpus_or_more_seeds_is_undecided(claims):
    found = claims(made.document())
    undecided = {id for id, claim in found.items() if claim.verdict == "undecided"}
    assert undecided == {
        *("Q5-accuracy", "Q6-sync-batch-norm", "Q6-data-parallel"),
        *("Q7-sync-statistics", "Q7-sync-seconds", "Q7-broadcast-seconds"),
    }
    assert "runs on GPUs only" in found["Q6-data-parallel"].sentence
    assert {claim.verdict for claim in found.values()} == {"supported", "undecided"}


def test_on_gpus_everything_that_was_recorded_is_decided(claims):
    found = claims(made.document(on_gpus=True))
    for id in ("Q6-sync-batch-norm", "Q6-data-parallel", "Q7-sync-statistics"):
        assert found[id].verdict == "supported", found[id]


def test_orders_that_come_again_only_without_set_epoch(claims):
    claim = claims(made.document())["Q5-repeats"]
    assert "one and the same order in all 3 epochs" in claim.sentence
    figures = claim.evidence[0].figures
    # Two ranks, three epochs: of three seeds trained and one drawn alone, either way.
    assert (figures["orders_with"], figures["different_with"]) == (24, 24)
    assert (figures["orders_without"], figures["different_without"]) == (24, 8)


@pytest.mark.parametrize(("index", "told"), [(0, False), (1, True)])
def test_orders_that_do_not_follow_set_epoch_refute(claims, index, told):
    document = made.document()
    document["trainings"][index]["orders"] = made.orders(told)
    claim = claims(document)["Q5-repeats"]
    assert claim.verdict == "refuted"
    assert "does not follow set_epoch" in claim.sentence


@pytest.mark.parametrize("change", [{"unseen": 3}, {"repeated": 2, "overlap": 2}])
def test_shards_that_overlap_or_leave_images_out_refute(claims, change):
    document = made.document()
    document["trainings"][0]["orders"] = made.orders(True, **change)
    claim = claims(document)["Q5-shards"]
    assert claim.verdict == "refuted" and "not disjoint" in claim.sentence


def test_a_repeat_that_makes_shares_equal_is_no_overlap(claims):
    document = made.document()
    document["trainings"][0]["orders"] = made.orders(True, repeated=1, overlap=1)
    claim = claims(document)["Q5-shards"]
    assert claim.verdict == "supported"
    assert "up to 1 images drawn twice" in claim.sentence


@pytest.mark.parametrize(
    ("pairs", "verdict", "words"),
    [
        # Differences of -10, -11 and -12 points: mean -11, and t(2) · 1 / sqrt(3) = 2.48.
        ([(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)], "supported", "−13.48 to −8.52"),
        ([(0.6, 0.7), (0.6, 0.71), (0.6, 0.72)], "refuted", "it gains"),
        ([(0.6, 0.7), (0.71, 0.6), (0.6, 0.61)], "undecided", "cannot be told"),
    ],
)
def test_accuracy_is_judged_by_the_interval_of_the_paired_differences(
    claims, pairs, verdict, words
):
    claim = claims(accuracies(made.document(), pairs))["Q5-accuracy"]
    assert claim.verdict == verdict
    assert words in claim.sentence


def test_a_seed_that_diverged_leaves_accuracy_undecided(claims):
    document = accuracies(made.document(), [(0.7, 0.6), (0.71, 0.6), (0.72, 0.6)])
    document["trainings"][2]["epochs"][-1]["train_loss"] = None
    claim = claims(document)["Q5-accuracy"]
    assert claim.verdict == "undecided" and "1 training diverged" in claim.sentence


def test_two_seeds_leave_accuracy_undecided(claims):
    document = made.document()
    document["trainings"] = [one for one in document["trainings"] if one["seed"] < 2]
    assert "no 3 seeds" in claims(document)["Q5-accuracy"].sentence


def test_a_random_sampler_that_repeats_itself_refutes(claims):
    document = made.document()
    document["permutations"][-1]["orders"] = made.orders(False, ranks=1)
    claim = claims(document)["Q5-data-parallel"]
    assert claim.verdict == "refuted" and "1 of 3 orders are new" in claim.sentence


def test_gradients_are_the_settled_steps_and_add_up_to_k(claims):
    claim = claims(made.document())["Q6-gradients"]
    assert "sends 2 all-reduces in its backward pass, 600 + 400 = 1,000 B" in claim.sentence


@pytest.mark.parametrize(
    "extra",
    [
        made.message(3, "backward", "all_reduce", 4),
        made.message(3, "update", "all_gather", 1000),
    ],
)
def test_a_message_too_many_refutes_that_gradients_and_buffers_travel_alone(claims, extra):
    document = made.document()
    messages_of(document, "ddp")["messages"].append(extra)
    claim = claims(document)["Q6-gradients"]
    assert claim.verdict == "refuted" and "does not send K = 1,000 B" in claim.sentence


def test_ranks_that_recorded_different_messages_refute(claims):
    document = made.document()
    messages_of(document, "ddp")["ranks_agree"] = False
    claim = claims(document)["Q6-gradients"]
    assert claim.verdict == "refuted" and "recorded different ones" in claim.sentence


def test_buffers_that_travel_where_they_are_switched_off_refute(claims):
    assert "1 message of 40 B together, 4 % of K" in claims(made.document())["Q6-buffers"].sentence
    document = made.document()
    messages_of(document, "ddp, buffers local")["messages"] = made.ddp_messages([1000])
    claim = claims(document)["Q6-buffers"]
    assert claim.verdict == "refuted" and "1 message where broadcasting is switched off" in (
        claim.sentence
    )


def test_parameters_sent_in_a_step_refute_that_they_travel_once(claims):
    document = made.document()
    extra = made.message(3, "forward", "broadcast", made.GRADIENT_BYTES)
    messages_of(document, "ddp")["messages"].append(extra)
    assert claims(document)["Q6-start"].verdict == "refuted"


def test_gradients_of_recipe_tuned_that_are_less_than_k_refute(claims):
    assert "24 B of padding" in claims(made.document())["Q6-tuned"].sentence  # 2 · 512 − 1000
    document = made.document()
    messages_of(document, "tuned")["messages"] = [made.message(3, "backward", "all_reduce", 512)]
    assert claims(document)["Q6-tuned"].verdict == "refuted"


def test_what_passes_through_gpu_0_is_added_up(claims):
    claim = claims(made.document(on_gpus=True))["Q6-data-parallel"]
    # To one other GPU 1000 + 40, from it 1000; half of 5000 + 80 + 80. A ring sends 2 · 1/2 · 1000.
    assert claim.evidence[0].figures["through_gpu_0"] == 2040 + 2580
    assert "pass 4,620 B, 4.62× what a ring" in claim.sentence


def test_data_parallel_that_does_not_copy_its_parameters_refutes(claims):
    document = made.document(on_gpus=True)
    way = messages_of(document, "dp")
    way["messages"] = [row for row in way["messages"] if row["bytes"] != made.GRADIENT_BYTES]
    assert claims(document)["Q6-data-parallel"].verdict == "refuted"


def test_parameters_that_differ_between_ranks_refute(claims):
    document = made.document()
    document["trainings"][-1] = made.training("local", parameters=("p", "q"))
    claim = claims(document)["Q7-parameters"]
    assert claim.verdict == "refuted" and "differ with buffers local" in claim.sentence


def test_equal_parameters_of_two_trainings_are_told_only_where_they_are(claims):
    assert "end with the same parameters" in claims(made.document())["Q7-parameters"].sentence
    document = made.document()
    document["trainings"][-1] = made.training("local", parameters=("q", "q"))
    claim = claims(document)["Q7-parameters"]
    assert claim.verdict == "supported" and "end with the same" not in claim.sentence


def test_statistics_that_agree_refute_that_they_drift(claims):
    claim = claims(made.document())["Q7-statistics"]
    assert "up to 2.0 %" in claim.sentence and "up to 1.0 %" in claim.sentence
    document = made.document()
    document["trainings"][0]["ranks"][1]["buffers_sha256"] = "b0"
    assert claims(document)["Q7-statistics"].verdict == "refuted"


def test_a_training_that_diverged_leaves_the_drift_undecided(claims):
    document = made.document(on_gpus=True)
    for one in document["trainings"]:
        one["drift"] = dict.fromkeys(one["drift"])
    found = claims(document)
    for id in ("Q7-statistics", "Q7-sync-statistics"):
        assert found[id].verdict == "undecided" and "diverged" in found[id].sentence


def test_sync_batch_norm_with_different_statistics_refutes(claims):
    document = made.document(on_gpus=True)
    document["trainings"][-1] = made.training("sync_batch_norm")
    assert claims(document)["Q7-sync-statistics"].verdict == "refuted"


def test_ranks_of_equal_accuracy_refute_that_it_matters_which_is_evaluated(claims):
    document = made.document()
    for one in document["trainings"]:
        one["ranks"][1]["test_accuracy"] = 0.6
    claim = claims(document)["Q7-evaluation"]
    assert claim.verdict == "refuted" and "60.00 to 60.00 %" in claim.sentence


def timed(**seconds):
    """The document whose epochs on batches in memory took so long with each kind of buffers."""
    rows = [row for kind, times in seconds.items() for row in made.buffer_seconds(kind, times)]
    return made.document(on_gpus=True, buffer_seconds=rows)


@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        ((2.0, 2.1), "supported", "takes 2.26 s (2.20–2.31), against 1.16 s (1.10–1.21)"),
        ((0.5, 0.6), "refuted", "does not cost time: an epoch on batches in memory takes 0.605 s"),
        ((1.1, 2.0), "undecided", "cannot be told from noise"),
        ((2.0, 2.1, 2.2), "undecided", "cannot be said"),
    ],
)
def test_seconds_are_judged_by_their_ranges_over_equally_many_epochs(
    claims, seconds, verdict, words
):
    document = timed(broadcast=(1.0, 1.1), local=(1.0, 1.1), sync_batch_norm=seconds)
    claim = claims(document)["Q7-sync-seconds"]
    assert claim.verdict == verdict and words in claim.sentence


def test_one_epoch_has_no_range_to_judge_by(claims):
    document = timed(broadcast=(1.0,), local=(1.0,), sync_batch_norm=(5.0,))
    assert claims(document)["Q7-sync-seconds"].verdict == "undecided"


def test_epochs_that_were_not_timed_without_loading_leave_the_cost_of_buffers_open(claims):
    found = claims(made.document(on_gpus=True, buffer_seconds=[]))
    for id, what in (("Q7-broadcast", "broadcasting buffers"), ("Q7-sync", "SyncBatchNorm")):
        claim = found[f"{id}-seconds"]
        assert claim.verdict == "undecided"
        assert claim.sentence == (
            f"Whether {what} costs time cannot be said: no epochs without loading were timed, "
            "equally many with both."
        )


def test_the_interval_of_paired_differences_is_students():
    # Differences 1, 2, 3: mean 2, s = 1; t(2; 0.975) = 4.3027 and 4.3027 / sqrt(3) = 2.4841.
    assert paired_interval([0, 5, 7], [1, 7, 10]) == (
        pytest.approx(2 - 2.4841, abs=1e-4),
        pytest.approx(2 + 2.4841, abs=1e-4),
    )
    assert paired_interval([1, 2], [2, 3]) == (1.0, 1.0)


def test_claims_know_numbers_by_the_names_of_their_tables(claims):
    for claim in claims(made.document(on_gpus=True)).values():
        for evidence in claim.evidence:
            assert evidence.file.startswith("tables/") and evidence.test
            assert all(pd.notna(value) for value in evidence.figures.values()), claim.id
