"""What a script says at its end."""

import pytest

from scaling.core.errors import UserError, printable, refused


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ü – 2 × 3\n\ta b", "ü – 2 × 3\n\ta b"),
        ("\x1b]0;title\x07\r\x9b2J", "\\x1b]0;title\\x07\\r\\x9b2J"),
        ("a\u202eb\u2066\u200b\u2028\ufeff", "a\\u202eb\\u2066\\u200b\\u2028\\ufeff"),
        ("\udcff\U000e0041", "\\udcff\\U000e0041"),
    ],
)
def test_what_steers_a_terminal_or_a_page_is_shown_as_an_escape(text, shown):
    assert printable(text) == shown
    with pytest.raises(SystemExit) as ended, refused():
        raise UserError(text)
    assert ended.value.code == f"error: {shown}"
