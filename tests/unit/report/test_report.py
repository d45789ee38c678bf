"""The page a reader opens: what it says, where, and that it needs nothing but itself."""

import re

import pytest

import report_render
from examples import convergence_records, report_tables
from examples.report_page import REPORT, Page, arguments, lay_out, render
from scaling.core.errors import UserError
from scaling.figures.registry import FIGURES
from scaling.report import report


def whole_study():
    """Every table that a report can have."""
    made = report_tables.make()
    return made | convergence_records.tables(made["timing"])


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    return render(tmp_path_factory.mktemp("study"), whole_study())


def test_the_page_is_one_document_that_loads_nothing(page):
    assert page.source.count("<!DOCTYPE html>") == 1
    tags = [tag for tag, _ in page.elements]
    assert tags.count("html") == tags.count("body") == tags.count("main") == 1
    assert not {"script", "link", "iframe", "object", "base"} & set(tags)
    loaded = [named[key] for _, named in page.elements for key in ("src", "href") if key in named]
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for value in loaded)
    assert not re.search(r"@import|url\(|https?:", page.source)


def test_every_figure_is_inside_the_page_and_described(page):
    images = [named for tag, named in page.elements if tag == "img"]
    # Without a variant below 8 bits there is none of their sizes.
    assert "No variant of this study has fewer than 8 bits" in page.text
    assert len(images) == len(FIGURES) - 1
    assert all(len(named["alt"]) > 40 for named in images)


def test_every_link_of_the_contents_leads_to_a_section(page):
    links = [named["href"][1:] for tag, named in page.elements if tag == "a"]
    anchors = [named["id"] for tag, named in page.elements if tag == "section"]
    assert anchors == [section.name for section in report.SECTIONS]
    assert links[: len(anchors)] == anchors


def test_every_section_has_a_template_and_every_template_a_section():
    templates = {path.name for path in (REPORT / "sections").iterdir()}
    assert templates == {f"{section.name}.html.j2" for section in report.SECTIONS}


def test_no_cell_of_any_table_is_blank(page):
    for title in page.tables:
        for row in page.rows(title):
            assert all(row), (title, row)


def test_the_head_says_what_ran_on_what(page):
    assert "images (cifar10-images.tar.xz): 40,000 training and 10,000 test images" in page.text
    for fact in (
        "NVIDIA H200",
        "node01",
        "torch 2.11.0, CUDA 13.0, NCCL 2.28.9, driver 580.95.05",
        "2025-11-20 09:00 UTC to 2025-11-20 10:30 UTC",
        "1fc5442e0c6f",
        "GPUs 1, 2, 4; batch sizes per GPU 32, 128, 512, 2048, 16384; 3 seeds",
        "SGD, learning rate 0.1",
        "course: loader_workers 2; fast: precision bf16",
    ):
        assert fact in page.text


def test_table_1_has_time_and_speedup_for_each_number_of_gpus(page):
    assert page.tables["Table 1: course, ddp"][0] == ["", "1 GPU", "2 GPUs", "4 GPUs"]
    assert page.row("Table 1: course, ddp", "32") == [
        *("9.80 9.60–10.0", "1.00×"),
        *("5.60 5.49–5.71", "1.75× 1.68–1.82"),
        *("3.10 3.04–3.16", "3.16× 3.04–3.29"),
    ]


def test_table_1_labels_what_is_not_a_plain_result(page):
    # 512: 3.0 / 1.49 exceeds 2. 2048: the single GPU's run timed out. 16384: see the factory.
    assert page.row("Table 1: course, ddp", "512")[3] == "2.01× 1.93–2.10 above 2"
    assert page.row("Table 1: course, ddp", "2048") == [
        *("timeout", "1.60 1.57–1.63", "no T(1, 2048)", "0.950 0.931–0.969", "no T(1, 2048)")
    ]
    assert page.row("Table 1: course, ddp", "16384")[2:] == [
        *("1.90 1.86–1.94 diverged", "1.93× 1.85–2.00", "infeasible")
    ]
    assert page.row("Table 1: course, dp", "16384")[2:] == ["oom", "infeasible"]


def test_a_speedup_that_may_be_noise_is_called_so(page):
    assert page.row("Table 1: course, dp", "128")[3] == "0.995× 0.956–1.04 within noise"


def test_what_a_failed_cell_said_is_on_the_page(page):
    assert "2 GPUs × 16384: The device had no room: 22.00 GiB were asked for" in page.text
    assert "the loss became NaN or infinite; the time counts, the accuracy does not" in page.text


def test_the_three_views_differ_where_they_should(page):
    views = page.rows("Three views of scaling: fast, ddp")
    # Batch 512 on 4 GPUs: 1.32 / 0.32 an epoch, the same by step but for the rounding of steps
    # (79 and 20), and 1.24 / 0.32 against batch 2048 on one GPU.
    assert views[5] == [
        "4",
        "4.12× efficiency 103 % above 4",
        "4.18× efficiency 104 % above 4",
        "2048",
        "3.88× efficiency 97 %",
    ]
    assert views[0][:2] == ["32", "2"]
    assert views[0][-1] == "no T(1, 64)"


def test_question_1_separates_loading_from_the_rest(page):
    title = "course, dp: seconds per epoch without loading, and waiting for data"
    assert page.row(title, "512")[:2] == ["1.50", "1.50 50 % of the epoch"]


def test_question_4_compares_with_batch_128_on_one_gpu(page):
    rows = page.rows("course, dp: after epoch 5")
    by_cell = {row[1]: row for row in rows}
    # Seeds 0, 1, 2 reach 0.78, 0.77, 0.76 in epoch 5, 0.02 less on the test set.
    assert by_cell["1 × 128"][3:] == [
        *("3", "0.860 0.840–0.880", "77.0 76.0–78.0"),
        *("0.960 0.940–0.980", "75.0 74.0–76.0", "reference"),
    ]
    assert by_cell["4 × 32"][-1] == "+0.00 within noise"
    assert by_cell["2 × 16384"][2:] == ["oom", "0", "no accuracy"]


def test_question_4_says_when_the_reference_has_no_accuracy(tmp_path):
    tables = report_tables.make()
    runs = tables["accuracy"]
    tables["accuracy"] = runs[(runs["gpus"] != 1) | (runs["batch_size"] != 128)]
    page = render(tmp_path, tables)
    by_cell = {row[1]: row for row in page.rows("course, dp: after epoch 5")}
    assert by_cell["4 × 32"][-1] == "no reference"
    assert "batch 128 on 1 GPU. It has no accuracy to compare with." in page.text
    assert "What a large batch costs in accuracy cannot be said" in page.text


def test_question_4_counts_only_seeds_with_an_accuracy(page):
    by_cell = {row[1]: row for row in page.rows("course, ddp: after epoch 5")}
    assert by_cell["2 × 16384"][2:4] == ["diverged", "2"]


def test_the_stages_of_quantization_are_per_seed_and_mean(page):
    title = "Accuracy with int8 weights and activations"
    assert page.row(title, "weights+activations") == [
        *("53.90 −0.10", "54.70 −0.30", "55.80 −0.20"),
        *("54.80 53.90–55.80", "−0.20 −0.30 to −0.10", "–", "94.0"),
    ]
    assert "Accuracy is on 10,000 test images." in page.text


def test_the_audit_lists_what_it_found(page):
    rows = page.rows("Findings")
    # 3.0 / 1.49 = 2.013, each ± 2 %; the cells of one finding stand below each other.
    above = "speedup above the number of GPUs; within noise"
    first = [row[1] for row in rows].index(above)
    assert rows[first] == [
        *("remark", above),
        *("course/ddp, 2 GPUs, b = 512", "2.013", "2.000"),
    ]
    assert rows[first + 1][0] == "fast/ddp, 4 GPUs, b = 512"
    assert page.row("Checks", "negative communication")[-1] == "3"
    assert page.row("Checks", "two baselines")[-1] == "0"


def test_a_clean_audit_says_so(tmp_path):
    tables = report_tables.make()
    tables["audit"] = tables["audit"][:0]
    page = render(tmp_path, tables)
    assert "Result: no findings." in page.text
    assert "Findings" not in page.tables


def test_a_single_gpu_run_that_strategies_share_is_said_to_be_shared(tmp_path, page):
    sentence = "it was measured once, and the strategies share that run"
    assert sentence not in page.text
    tables = report_tables.make()
    tables["provenance"].loc[0, "measured_as"] = "ddp"
    assert sentence in render(tmp_path, tables).text


def test_options_of_runs_that_never_started_are_not_said_to_have_been_used(tmp_path):
    tables = report_tables.make()
    runs = tables["provenance"]
    runs.loc[runs["status"] == "infeasible", "recipe_options"] = "asked for"
    facts = render(tmp_path, tables).text.partition("Summary")[0]
    assert "course: loader_workers 2; fast: precision bf16" in facts


def test_a_gpu_without_a_recorded_name_is_no_cpu(tmp_path):
    tables = report_tables.make()
    tables["provenance"]["device_names"] = ""
    assert "on a CPU." not in render(tmp_path, tables).text


def test_on_a_cpu_the_page_says_what_a_gpu_is(tmp_path, page):
    sentence = "“GPU” here means one process with 1 thread on a CPU."
    assert sentence in render(tmp_path, report_tables.make(device="cpu")).text
    assert sentence not in page.text


def test_a_partial_page_lists_what_is_missing(tmp_path, page):
    partial = render(tmp_path, report_tables.make(missing=True), "--partial")
    banner = partial.text.partition("This report is partial.")[2]
    assert (
        banner.split("\n")[0].strip() == "It lacks 1 of 45 cells, and every figure that needs them:"
    )
    assert "fast/ddp, 4 GPUs, b\u00a0=\u00a032" in banner[:200]
    assert partial.row("Table 1: fast, ddp", "32")[-1] == "missing"
    assert "This report is partial" not in page.text


def test_a_page_of_runs_that_shared_a_machine_warns_of_its_times(tmp_path, page):
    shared = render(tmp_path, whole_study(), "--side-by-side")
    assert "The times here say little. Runs may have shared one machine" in shared.text
    assert "The times here say little" not in page.text


def test_missing_cells_are_refused_unless_asked_for(tmp_path):
    with pytest.raises(UserError, match="1 cell of example are missing, the first is fast/ddp"):
        render(tmp_path, report_tables.make(missing=True))
    assert not (tmp_path / "report.html").exists()


def test_markup_in_a_table_is_shown_not_obeyed(tmp_path):
    host = "<script>alert(1)</script>"
    page = render(tmp_path, report_tables.make(host=host))
    assert "script" not in [tag for tag, _ in page.elements]
    assert page.row("Environments of the grid’s runs", "hosts") == [host]


def test_the_same_tables_give_the_same_page(tmp_path, page):
    assert render(tmp_path, whole_study()).source == page.source


@pytest.mark.parametrize("name", [*report_tables.make(), "figure", "manifest", "topology"])
def test_a_file_that_does_not_exist_is_named(tmp_path, name):
    lay_out(tmp_path, report_tables.make())
    others = {"figure": "learning.svg", "manifest": "manifest.json", "topology": "topology.txt"}
    file = others.get(name, f"{name}.csv")
    (found,) = tmp_path.rglob(file)
    found.unlink()
    with pytest.raises(UserError, match=re.escape(file)):
        report_render.main(arguments(tmp_path))


def test_a_study_of_which_nothing_ran_still_has_a_page(tmp_path):
    tables = report_tables.make()
    timing = tables["timing"]
    numbers = [name for name in timing if name not in (*timing.columns[:5], "message")]
    timing[numbers] = float("nan")
    timing["status"] = "oom"
    nothing = report_tables.derive(timing)
    page = render(tmp_path, tables | nothing)
    assert "No cell has a time, so none is fastest." in page.text
    assert page.row("Table 1: course, ddp", "32") == ["oom", "oom", "oom"]


def test_a_model_that_only_some_runs_describe_in_full_is_named_once(tmp_path):
    tables = report_tables.make()
    runs = tables["provenance"]
    runs.loc[runs["status"] == "ok", "model"] = "resnet18-cifar, width 64, 11,173,962 parameters"
    facts = render(tmp_path, tables).text.partition("Summary")[0]
    assert facts.count("resnet18-cifar") == 1 and "11,173,962 parameters" in facts
