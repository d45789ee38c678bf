"""The answers in the order of a form of the course, with its points."""

import pytest

from answers_form import main
from scaling.core.errors import UserError

ANSWERS = "# A study\n\n## Q2: How?\n\nSo.\n\n## Q1: Why?\n\nThus.\n\n## Q7: What?\n\nNo.\n\n"
ANSWERS += "## Part B: Which?\n\nThis.\n"


@pytest.mark.parametrize(
    ("form", "heads"),
    [
        ("Q7", ["Q1: Why? (10 points)", "Q2: How? (10 points)", "Q7: What? (10 points)"]),
        ("B5", ["Q1: Why? (10 points)", "Q2: How? (10 points)"]),
    ],
)
def test_answers_follow_the_order_of_a_form(tmp_path, form, heads):
    path = tmp_path / "answers.md"
    path.write_text(ANSWERS)
    main(answers=path, form=form)
    text = (tmp_path / f"answers-{form}.md").read_text()
    sections = [one.partition("\n")[0] for one in text.split("## ")[1:]]
    part_b = "B1 to B5: Which? (50 points)" if form == "B5" else "Part B: Which? (20 points)"
    assert [one for one in sections if ":" in one] == [*heads, part_b]
    assert "## Q3.1 (5 points)\n\nNot measured." in text or form == "Q7"
    assert text.startswith("# A study\n") and "Thus.\n" in text


def test_an_unknown_form_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no form 'Q9'; choose of Q7, B5"):
        main(answers=tmp_path / "answers.md", form="Q9")
