"""The audit's checks on printed figures: silent on a clean study, each alone on its own fault."""

from dataclasses import replace

import pandas as pd
import pytest

from examples.published_study import column, edited, study
from scaling.audit.checks import audit


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


SWEEP = "study,gpus,batch_size,epoch_seconds\nclean,1,512,{}\n"
ONE = {"printed_communication_seconds": ""}


@pytest.mark.parametrize(
    ("values", "check", "severity", "found", "expected"),
    [
        (
            column("printed_bandwidth_gb_per_s", "0.05701", "0.2280", "0.1710", "0.6704"),
            *("printed_bytes_of_one_iteration", "error", 0.05701, 11.173962),
        ),
        (
            column("printed_bandwidth_gb_per_s", "128", "512", "192", "768"),
            *("printed_bandwidth_is_batch_size", "error", 128, 11.173962),
        ),
        (
            column("printed_speedup", "", "", "2.000", "1.999"),
            *("other_definition", "error", 2, 3.679),
        ),
        (
            column("printed_bandwidth_gb_per_s", "10.407", "10.407", "15.610", "15.610"),
            *("other_definition", "warning", 10.407, 11.173962),
        ),
        # 9.1 + 0.584 = 9.684, the epoch without loading: the sum is in order.
        (
            {(2, 128): ONE | {"printed_compute_seconds": "9.100"}},
            *("printed_single_time_differs", "error", 18.2, 18.0),
        ),
        (
            {(4, 512): {"printed_bandwidth_gb_per_s": "99"}},
            *("not_reproduced", "error", 99, 16.760943),
        ),
        # 1 % less: a remark
        (
            {(4, 512): {"printed_bandwidth_gb_per_s": "16.60"}},
            *("not_reproduced", "info", 16.6, 16.760943),
        ),
        # Exchanged columns
        (
            {
                (2, 128): {
                    "printed_compute_seconds": "0.784",
                    "printed_communication_seconds": "8.900",
                }
            },
            *("other_definition", "error", 0.784, 8.9),
        ),
    ],
)
def test_each_mistake_is_found_by_its_own_check_alone(
    tmp_path, values, check, severity, found, expected
):
    findings = only_check(study(tmp_path, edited(values)).tables)
    first = findings.iloc[0]
    assert set(findings.check) == {check} and set(findings.severity) == {severity}
    assert first.found == pytest.approx(found)
    assert first.expected == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("seconds", "severity"), [("18.0", "warning"), ("17.12", "info")])
def test_a_second_list_with_another_time_is_found(tmp_path, seconds, severity):
    # 17.12 where the table has 17.0: 0.7 %
    found = only_check(study(tmp_path, batch_sweep=SWEEP.format(seconds)).tables)
    assert found.check.tolist() == ["printed_single_time_differs"]
    assert (found.severity[0], found.found[0], found.expected[0]) == (severity, float(seconds), 17)


def test_figures_that_cannot_be_checked_are_a_remark(tmp_path):
    text = "\n".join(
        line for line in edited({}).splitlines() if ",1,128," not in line and ",1,512," not in line
    )
    found = only_check(study(tmp_path, text).tables)
    assert set(found.check) == {"printed_cannot_be_checked"}
    assert set(found.severity) == {"info"}
    assert len(found) == 3 * 4  # speedup, compute and communication of four cells
