"""The cost model on the page: its parameters, its test, its predictions."""

from examples import report_tables
from examples.report_page import section


def test_the_report_shows_the_model_its_test_and_its_predictions(tmp_path):
    page = section(tmp_path, "prediction", report_tables.make())
    assert page.row("Cost model: course, ddp", "fixed")[1:] == [
        *("µs a step", "a step, whatever its batch"),
    ]
    assert "of the all-reduce" in page.row("Cost model: course, ddp", "communication")[1]
    judged = page.rows("Predicted without having seen them: course, ddp")
    assert [line[:2] for line in judged] == [
        *(["4 × 32", "3.10"], ["4 × 128", "1.25"], ["4 × 512", "0.900"], ["4 × 2048", "0.950"]),
    ]
    predicted = page.rows("Not measured, predicted: course, ddp")
    # 40,000 images: 1,024 GPUs take b=32, 16 take b=2048
    heads = [line[0] for line in predicted]
    assert "32 × 1024" in heads and "2048 × 16" in heads and "2048 × 32" not in heads
    # The fastest cell stands in the summary, and here no second time.
    assert "Fastest:" not in page.text
    assert any(item.startswith("Cheapest: ") for item in page.items)
