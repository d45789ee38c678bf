"""Write a study's answers in the order of a course's form, with the points per question."""

import re
from pathlib import Path

from scaling.config.stored import read_config
from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.report.page import REPORT


def arranged(text: str, points: dict[str, float]) -> str:
    """Return the answers in `text` in the order of a form, with the full `points` of each question.

    A missing answer becomes "Not measured".
    """
    head, *sections = re.split(r"(?m)^## ", text)
    names = {section.partition(":")[0]: section for section in sections}
    # Part B of the answers are all questions B1, B2 … of a form.
    names |= {name: names["Part B"] for name in points if name[:1] == "B" and "Part B" in names}
    parts = [head]
    for name, full in points.items():
        title, _, body = names.get(name, f"{name}\n\nNot measured.\n").partition("\n")
        parts.append(f"{re.sub(r'^(Part B|Q[^:]*)', name, title)} ({full:g} points)\n{body}")
    return "## ".join(parts)


@command_line.script
def main(answers: Path, form: str) -> None:
    """Write the answers of a study as answers-FORM.md beside the file `answers`."""
    forms: dict[str, dict[str, float]] = read_config(REPORT / "forms.yaml")
    if form not in forms:
        raise UserError(f"FORM: there is no form {form!r}; choose of {', '.join(forms)}")
    target = answers.with_name(f"{answers.stem}-{form}.md")
    files.write_text(target, arranged(answers.read_text(encoding="utf-8"), forms[form]))
    print(f"The answers in the order of form {form} are {target}")
