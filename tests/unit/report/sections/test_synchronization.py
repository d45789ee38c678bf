"""The report's sections on image orders, messages and buffers."""

import pytest

from examples import report_tables
from examples import synchronization_records as made
from examples.report_page import section
from scaling.tables.experiments.synchronization import accuracy, buffers, collectives, orders

NAMES = ("set_epoch", "collectives", "buffers")


def show(folder, document):
    tables = {
        "sampler": orders([document]),
        "sampler_accuracy": accuracy([document]),
        "collectives": collectives([document]),
        "buffers": buffers([document]),
    }
    return section(folder, NAMES, report_tables.make() | tables)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return show(tmp_path_factory.mktemp("report"), made.document())


def test_a_row_for_each_sampler_says_how_many_orders_a_rank_has(page):
    rows = page.rows("Orders of images, hashed")
    assert rows == [
        ["DistributedSampler", "2", "yes", "3", "3", "0", "0", "0", "24"],
        ["DistributedSampler", "2", "no", "3", "1", "0", "0", "0", "24"],
        ["RandomSampler", "1", "no", "3", "3", "–", "0", "0", "3"],
    ]


def test_accuracies_are_paired_by_seed(page):
    row = page.row("Recipe course with and without set_epoch, after 3 epochs", "1")
    assert row[-3:] == ["60.00 %", "60.00 %", "+0.00"]


def test_messages_of_the_start_and_of_one_step_are_listed_with_their_share_of_k(page):
    rows = page.rows("Messages of a training step")
    assert rows[0] == ["ddp", "once, at the start", "all-gather", "shapes", "1", "8", "0.8 %"]
    assert ["each step, backward", "all-reduce", "gradients", "2", "1,000", "100 %"] in rows
    assert not any("order of buckets" in row for row in rows)
    assert "dp: not measured: DataParallel on several devices runs on GPUs only" in page.text


def test_ranks_are_compared_kind_by_kind(page):
    row = page.row("Ranks compared after the last epoch", "local to each rank")
    assert row[:2] == ["identical", "2 different"]
    assert row[2] == "2.0 % 2.0 % at most" and row[4] == "60.00–61.00 %"
    assert row[-1] == "1.21 s 1.10–1.32, n = 3"
    assert "SyncBatchNorm: not measured" in page.text


def test_trainings_that_should_be_equal_and_are_not_are_no_measure_of_buffers(page, tmp_path):
    words = "compare test accuracies within a row, not between rows"
    assert words not in page.text
    document = made.document()
    local = next(one for one in document["trainings"] if one["buffers"] == "local")
    for rank in local["ranks"]:
        rank["parameters_sha256"] = "q"
    assert words in show(tmp_path, document).text


def test_a_share_too_small_for_three_digits_is_bounded(tmp_path):
    document = made.document()
    document["model"]["parameter_bytes"] = 10**8
    rows = show(tmp_path, document).rows("Messages of a training step")
    assert rows[0][-3:] == ["1", "8", "< 0.001 %"]


def test_a_study_without_these_experiments_says_so(tmp_path):
    text = section(tmp_path, NAMES, report_tables.make()).text
    assert "no record of image orders" in text and "no record of the messages of a step" in text
    assert "no record of ranks that were compared" in text
