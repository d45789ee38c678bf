"""Answers in the order of a course form, with the form's points."""

from scaling.config.stored import read_config
from scaling.report import page

ANSWERS = "# A study\n\n## Q2: How?\n\nSo.\n\n## Q1: Why?\n\nThus.\n\n## Q7: What?\n\nNo.\n\n"
ANSWERS += "## Part B: Which?\n\nThis.\n"


def test_answers_follow_the_order_of_a_form():
    text = page.arranged(ANSWERS, read_config(page.REPORT / "forms.yaml")["B5"])
    heads = [one.partition("\n")[0] for one in text.split("## ")[1:]]
    found = ["Q1: Why? (10 points)", "Q2: How? (10 points)", "B1 to B5: Which? (50 points)"]
    assert [one for one in heads if ":" in one] == found
    assert "## Q3.1 (5 points)\n\nNot measured." in text
    assert text.startswith("# A study\n") and "Thus.\n" in text
