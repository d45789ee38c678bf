"""Answers in the order of a course form, with the form's points."""

import pytest

from answers_form import main
from scaling.core.errors import UserError

ANSWERS = "# A study\n\n## Q2: How?\n\nSo.\n\n## Q1: Why?\n\nThus.\n\n## Q7: What?\n\nNo.\n\n"
ANSWERS += "## Part B: Which?\n\nThis.\n"


def test_answers_follow_the_order_of_a_form(tmp_path):
    path = tmp_path / "answers.md"
    path.write_text(ANSWERS)
    main(answers=path, form="B5")
    text = (tmp_path / "answers-B5.md").read_text()
    heads = [one.partition("\n")[0] for one in text.split("## ")[1:]]
    assert [one for one in heads if ":" in one] == [
        *("Q1: Why? (10 points)", "Q2: How? (10 points)", "B1 to B5: Which? (50 points)")
    ]
    assert "## Q3.1 (5 points)\n\nNot measured." in text
    assert text.startswith("# A study\n") and "Thus.\n" in text


def test_unknown_form_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no form 'Q9'; choose of Q7, B5"):
        main(answers=tmp_path / "answers.md", form="Q9")
