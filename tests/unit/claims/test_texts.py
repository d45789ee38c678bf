"""The texts of report/claims: every sentence can be filled in, and is one that a claim can have."""

from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError, nodes

from scaling.claims import texts

MODULES = Path(texts.__file__).parent.glob("*.py")
VERDICTS = {"supported", "refuted", "undecided"}
VARIANTS = [
    (kind, case)
    for kind, text in texts.texts().items()
    for case in sorted(text.variants() | ({"undecided"} if text.sentence else set()))
]


class Anything(float):
    """A number that has every attribute, and is a list of three of its kind as well."""

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> "Anything":
        return self

    def __iter__(self) -> Any:
        return iter([self, self, self])

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(("kind", "case"), VARIANTS)
def test_every_sentence_can_be_filled_in(kind, case, monkeypatch):
    for name in texts.FILTERS:
        monkeypatch.setitem(texts.ENVIRONMENT.filters, name, lambda *values: "…")
    text = texts.texts()[kind]
    source = [*text.parts.values(), text.sentences.get(case, text.sentence)]
    names = texts.ENVIRONMENT.parse(" ".join(source)).find_all(nodes.Name)
    facts = {each.name: Anything(0.5) for each in names if each.ctx == "load"}
    facts |= {"name": "tuned/ddp", "what": "buffers", "kinds": ["local"], "apart": ["local"]}
    facts |= dict.fromkeys(("groups", "fewer", "gains"), [(Anything(1), Anything(2))] * 2)
    parts = {signature.partition("(")[0] for signature in text.parts}
    known = {key: value for key, value in facts.items() if key not in {*parts, "word", "verdict"}}
    sentence = texts.sentence(kind, case, case if case in VERDICTS else "undecided", known)
    assert sentence.endswith(".") and "{" not in sentence and "  " not in sentence
    assert " ." not in sentence and " ," not in sentence


def test_every_case_is_one_that_the_code_names():
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    named = {case for _, case in VARIANTS if f'"{case}"' in code}
    assert {case for _, case in VARIANTS} - VERDICTS == named - VERDICTS
    assert all(f'"{kind}"' in code for kind, _ in VARIANTS)


def test_a_sentence_without_its_facts_is_refused():
    with pytest.raises(UndefinedError, match="'reason' is undefined"):
        texts.sentence("Q6-tuned", "not_recorded", "undecided", {})
