"""The audit's checks on printed figures: silent on a clean study, each alone on its own fault."""

from dataclasses import replace

import pandas as pd
import pytest

from examples.published_study import column, edited, of_repository, study
from scaling.audit.checks import CHECKS, audit
from scaling.audit.printed import CHECKS as PRINTED_CHECKS


@pytest.fixture
def clean(tmp_path):
    """The tables of the clean study."""
    return study(tmp_path / "clean").tables


def only_check(tables) -> pd.DataFrame:
    """The findings, which must all be of one check."""
    found = audit(tables)
    assert found.check.nunique() == 1, found.to_string()
    return found


def with_printed(tables, quantity, gpus, batch_size, value):
    """The tables with another printed figure, as if some definition gave it."""
    table = tables.printed.copy()
    same = (table.quantity == quantity) & (table.gpus == gpus) & (table.batch_size == batch_size)
    table.loc[same, "printed"] = value
    return replace(tables, printed=table)


def test_a_clean_published_study_has_no_findings(clean):
    assert audit(clean).empty


def test_every_check_says_what_it_holds_the_tables_against():
    assert all(check.__doc__ for check in CHECKS)
    assert {check.__name__ for check in PRINTED_CHECKS} < {check.__name__ for check in CHECKS}


def test_printed_parts_that_do_not_add_up_are_an_error(tmp_path):
    # Both right to 2 %, of different times: 8.9 without loading, 0.784 with. Together 9.684, where
    # the epoch is 9.784, or 9.674 without loading.
    values = {"epoch_seconds_without_loading": "9.674"}
    found = only_check(study(tmp_path, edited({(2, 128): values})).tables)
    assert found.iloc[0].check == "printed_parts_differ_from_total"
    assert found.iloc[0].severity == "error"
    assert (found.iloc[0].gpus, found.iloc[0].batch_size) == (2, 128)
    assert found.iloc[0].found == pytest.approx(9.684)
    assert found.iloc[0].expected == 9.784


def test_printed_parts_may_add_up_to_the_epoch_with_loading_or_without(tmp_path):
    values = {"printed_compute_seconds": "9.000"}  # 18/2; 9.000 + 0.784 = 9.784
    assert audit(study(tmp_path, edited({(2, 128): values})).tables).empty


def test_a_printed_communication_below_zero_is_a_warning(tmp_path):
    # T(4,512) = 4.1 without loading is less than 16.8/4 = 4.2.
    values = {
        "epoch_seconds_without_loading": "4.100",
        "printed_communication_seconds": "-0.100",
        "printed_bandwidth_gb_per_s": "",
        "printed_utilization_percent": "",
    }
    # Nor can the other share on 4 GPUs say alone of what it is one.
    alone = {(4, 512): values, (4, 128): {"printed_utilization_percent": ""}}
    found = audit(study(tmp_path, edited(alone)).tables)
    # The derived time is below 0 as well: the same fact, found by the check on derived tables.
    assert set(found.check) == {"negative_communication", "printed_communication_below_zero"}
    printed = found[found.check == "printed_communication_below_zero"].iloc[0]
    assert (printed.severity, printed.found, printed.expected) == ("warning", -0.1, 0)


def test_a_printed_communication_below_zero_is_found_by_itself(clean):
    negative = with_printed(clean, "communication_seconds", 2, 512, -0.196)
    # Compute as much more, so that both still add up.
    found = only_check(with_printed(negative, "compute_seconds", 2, 512, 8.596 + 0.196))
    assert found.check.tolist() == ["printed_communication_below_zero"]


def test_a_printed_utilization_above_100_percent_is_a_warning(tmp_path):
    values = column("printed_utilization_percent", "111.7", "111.7", "167.6", "167.6")
    tables = study(tmp_path, edited(values)).tables
    unnamed = replace(tables, printed=tables.printed.assign(mistakes=""))
    found = only_check(unnamed)
    assert set(found.check) == {"printed_utilization_above_all"}
    assert found.found.tolist() == [111.7, 111.7, 167.6, 167.6]
    assert found.severity.tolist() == ["warning"] * 4


def test_a_printed_speedup_above_n_is_a_warning(clean):
    found = only_check(with_printed(clean, "speedup", 2, 128, 2.09))
    assert found.iloc[0].check == "printed_speedup_above_gpus"
    assert (found.iloc[0].severity, found.iloc[0].found, found.iloc[0].expected) == (
        *("warning", 2.09, 2),
    )


def test_a_printed_speedup_of_n_and_its_last_digit_is_in_order(clean):
    assert audit(with_printed(clean, "speedup", 2, 128, 2.001)).empty


def test_bytes_of_one_iteration_are_an_error(tmp_path):
    values = column("printed_bandwidth_gb_per_s", "0.05701", "0.2280", "0.1710", "0.6704")
    found = only_check(study(tmp_path, edited(values)).tables)
    assert set(found.check) == {"printed_bytes_of_one_iteration"}
    assert found.severity.tolist() == ["error"] * 4
    assert found.found[0] == 0.05701
    assert found.expected[0] == pytest.approx(11.173962)
    assert found.message[0] == (
        "the printed bandwidth divides the bytes of one iteration by the seconds of one epoch"
    )


def test_a_bandwidth_that_is_a_batch_size_is_an_error(tmp_path):
    values = column("printed_bandwidth_gb_per_s", "128", "512", "192", "768")
    found = only_check(study(tmp_path, edited(values)).tables)
    assert set(found.check) == {"printed_bandwidth_is_batch_size"}
    assert set(found.severity) == {"error"}


def test_a_compute_time_of_another_single_gpu_time_is_an_error(tmp_path):
    # 9.1 + 0.584 = 9.684, the epoch without loading: the sum is in order.
    values = {"printed_compute_seconds": "9.100", "printed_communication_seconds": ""}
    found = only_check(study(tmp_path, edited({(2, 128): values})).tables)
    assert found.check.tolist() == ["printed_single_time_differs"]
    assert found.severity.tolist() == ["error"]
    assert (found.found[0], found.expected[0]) == (pytest.approx(18.2), 18.0)


def test_a_second_list_with_another_time_is_a_warning(tmp_path):
    sweep = "study,gpus,batch_size,epoch_seconds\nclean,1,512,18.0\n"
    found = only_check(study(tmp_path, batch_sweep=sweep).tables)
    assert found.check.tolist() == ["printed_single_time_differs"]
    assert (found.severity[0], found.found[0], found.expected[0]) == ("warning", 18.0, 17.0)


@pytest.mark.parametrize(
    ("values", "severity"),
    [
        (column("printed_speedup", "", "", "2.000", "1.999"), "error"),
        (column("printed_bandwidth_gb_per_s", "10.407", "10.407", "15.610", "15.610"), "warning"),
    ],
)
def test_another_definition_is_found_with_the_gravity_of_its_mistake(tmp_path, values, severity):
    found = only_check(study(tmp_path, edited(values)).tables)
    assert set(found.check) == {"other_definition"}
    assert set(found.severity) == {severity}


def test_figures_that_cannot_be_checked_are_a_remark(tmp_path):
    text = "\n".join(
        line for line in edited({}).splitlines() if ",1,128," not in line and ",1,512," not in line
    )
    found = only_check(study(tmp_path, text).tables)
    assert set(found.check) == {"printed_cannot_be_checked"}
    assert set(found.severity) == {"info"}
    assert len(found) == 3 * 4  # speedup, compute and communication of four cells
    assert found.message[0] == (
        "the printed speedup cannot be checked: the study has no T(1,b) for this b"
    )


def test_utilization_of_one_number_is_a_remark_that_names_it(tmp_path):
    values = column("printed_utilization_percent", "22.35", "22.35", "33.52", "33.52")
    found = only_check(study(tmp_path, edited(values)).tables)
    assert set(found.severity) == {"info"}
    assert found.message[0] == (
        "the printed utilization is a share of one number for every N (bandwidth / 50 GB/s); "
        "the document should say how it was measured"
    )


def test_columns_that_were_exchanged_are_an_error(tmp_path):
    values = {"printed_compute_seconds": "0.784", "printed_communication_seconds": "8.900"}
    found = only_check(study(tmp_path, edited({(2, 128): values})).tables)
    assert found.check.tolist() == ["other_definition"] * 2
    assert set(found.severity) == {"error"}
    assert "stands in the wrong column" in found.message[0]


def test_a_second_list_that_differs_a_little_is_a_remark(tmp_path):
    # 17.12 where the table has 17.0: 0.7 %
    sweep = "study,gpus,batch_size,epoch_seconds\nclean,1,512,17.12\n"
    found = only_check(study(tmp_path, batch_sweep=sweep).tables)
    assert found.check.tolist() == ["printed_single_time_differs"]
    assert (found.severity[0], found.found[0], found.expected[0]) == ("info", 17.12, 17.0)


def test_a_figure_that_nothing_gives_is_an_error(tmp_path):
    text = edited({(4, 512): {"printed_bandwidth_gb_per_s": "99"}})
    found = only_check(study(tmp_path, text).tables)
    assert found.check.tolist() == ["not_reproduced"]
    assert (found.severity[0], found.found[0]) == ("error", 99)
    assert found.message[0] == (
        "the printed bandwidth is reproduced neither by its own definition nor by ours"
    )


def test_a_figure_that_is_off_by_one_percent_is_a_remark(tmp_path):
    # 16.760943 GB/s printed as 16.60
    text = edited({(4, 512): {"printed_bandwidth_gb_per_s": "16.60"}})
    found = only_check(study(tmp_path, text).tables)
    assert found.check.tolist() == ["not_reproduced"]
    assert (found.severity[0], found.found[0]) == ("info", 16.6)
    assert found.expected[0] == pytest.approx(16.760943)


def test_loading_below_zero_is_an_error(tmp_path):
    values = {
        "epoch_seconds_without_loading": "19",
        "printed_speedup": "",
    }
    several = {
        cell: dict.fromkeys(["printed_compute_seconds", "printed_communication_seconds"], "")
        | dict.fromkeys(["printed_bandwidth_gb_per_s", "printed_utilization_percent"], "")
        | {"epoch_seconds_without_loading": ""}
        for cell in [(2, 128), (4, 128), (2, 512), (4, 512)]
    }
    found = only_check(study(tmp_path, edited({(1, 128): values, **several})).tables)
    assert found.check.tolist() == ["loading_does_not_add_up"]
    assert (found.found[0], found.expected[0]) == (19, 18)


def test_the_published_studies_are_flagged_for_what_their_documents_show():
    errors = {
        name: set(found[found.severity == "error"].check)
        for name in ("lab5-v100-dp", "lab4-dp", "notebook-dp", "lab5-a40-ddp")
        for found in [audit(of_repository(name).tables)]
    }
    assert errors == {
        "lab5-v100-dp": {"printed_parts_differ_from_total", "other_definition"},
        "lab4-dp": {
            "printed_parts_differ_from_total",
            "printed_bandwidth_is_batch_size",
            "not_reproduced",
        },
        "notebook-dp": {
            "batch_exceeds_dataset",
            "printed_bytes_of_one_iteration",
            "other_definition",
        },
        "lab5-a40-ddp": {
            "printed_bytes_of_one_iteration",
            "printed_single_time_differs",
            "other_definition",
        },
    }
