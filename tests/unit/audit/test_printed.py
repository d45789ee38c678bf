"""The audit's checks on printed figures: silent on a clean study, each alone on its own fault."""

from dataclasses import replace

import pytest

from examples.published_study import column, edited, study
from scaling.audit.checks import audit

COMPUTE, COMMUNICATION = "printed_compute_seconds", "printed_communication_seconds"
SPEEDUP, BANDWIDTH = "printed_speedup", "printed_bandwidth_gb_per_s"
SHARE, WITHOUT = "printed_utilization_percent", "epoch_seconds_without_loading"


def only_check(tables):
    """The findings, which must all be of one check."""
    found = audit(tables)
    assert found.check.nunique() == 1, found.to_string()
    return found


@pytest.mark.parametrize("values", [{}, {(2, 128): {COMPUTE: "9.000"}}])
def test_printed_parts_may_add_up_to_the_epoch_without_loading_or_with(tmp_path, values):
    # 18/2 = 9.000 and 9.000 + 0.784 = 9.784
    assert audit(study(tmp_path, edited(values)).tables).empty


def test_a_printed_communication_below_zero_is_a_warning(tmp_path):
    # T(4,512) = 4.1 without loading is less than 16.8/4 = 4.2.
    values = {WITHOUT: "4.100", COMMUNICATION: "-0.100", BANDWIDTH: "", SHARE: ""}
    # Nor can the other share on 4 GPUs say alone of what it is one.
    found = audit(study(tmp_path, edited({(4, 512): values, (4, 128): {SHARE: ""}})).tables)
    # The derived time is below 0 as well: the same fact, found by the check on derived tables.
    assert set(found.check) == {"negative_communication", "printed_communication_below_zero"}
    printed = found[found.check == "printed_communication_below_zero"].iloc[0]
    assert (printed.severity, printed.found, printed.expected) == ("warning", -0.1, 0)


def test_a_printed_utilization_above_100_percent_is_a_warning(tmp_path):
    values = column(SHARE, "111.7", "111.7", "167.6", "167.6")
    tables = study(tmp_path, edited(values)).tables
    found = only_check(replace(tables, printed=tables.printed.assign(mistakes="")))
    assert set(found.check) == {"printed_utilization_above_all"}
    assert found.found.tolist() == [111.7, 111.7, 167.6, 167.6]
    assert found.severity.tolist() == ["warning"] * 4


@pytest.mark.parametrize(("printed", "severities"), [(2.09, ["warning"]), (2.001, [])])
def test_a_printed_speedup_above_n_is_a_warning_but_for_its_last_digit(
    tmp_path, printed, severities
):
    tables = study(tmp_path).tables
    table = tables.printed.copy()
    table.loc[table.eval("quantity == 'speedup' and gpus == 2"), "printed"] = [printed, 1.955]
    found = audit(replace(tables, printed=table))
    assert found.severity.tolist() == severities
    assert found.check.tolist() == ["printed_speedup_above_gpus"] * len(severities)


@pytest.mark.parametrize(
    ("values", "check", "severity", "found", "expected"),
    [
        # Both right to 2 %, of different times: 8.9 without loading, 0.784 with. Together 9.684,
        # where the epoch is 9.784, or 9.674 without loading.
        (
            {(2, 128): {WITHOUT: "9.674"}},
            *("printed_parts_differ_from_total", "error", 9.684, 9.784),
        ),
        (
            column(BANDWIDTH, "0.05701", "0.2280", "0.1710", "0.6704"),
            *("printed_bytes_of_one_iteration", "error", 0.05701, 11.173962),
        ),
        (
            column(BANDWIDTH, "128", "512", "192", "768"),
            *("printed_bandwidth_is_batch_size", "error", 128, 11.173962),
        ),
        (column(SPEEDUP, "", "", "2.000", "1.999"), *("other_definition", "error", 2, 3.679)),
        # 9.1 + 0.584 = 9.684, the epoch without loading: the sum is in order.
        (
            {(2, 128): {COMMUNICATION: "", COMPUTE: "9.100"}},
            *("printed_single_time_differs", "error", 18.2, 18.0),
        ),
        ({(4, 512): {BANDWIDTH: "99"}}, *("not_reproduced", "error", 99, 16.760943)),
        # 1 % less: a remark
        ({(4, 512): {BANDWIDTH: "16.60"}}, *("not_reproduced", "info", 16.6, 16.760943)),
        # Exchanged columns
        (
            {(2, 128): {COMPUTE: "0.784", COMMUNICATION: "8.900"}},
            *("other_definition", "error", 0.784, 8.9),
        ),
    ],
)
def test_each_mistake_is_found_by_its_own_check_alone(
    tmp_path, values, check, severity, found, expected
):
    findings = only_check(study(tmp_path, edited(values)).tables)
    assert set(findings.check) == {check} and set(findings.severity) == {severity}
    first = findings.iloc[0]
    assert (first.found, first.expected) == pytest.approx((found, expected), rel=1e-3)
