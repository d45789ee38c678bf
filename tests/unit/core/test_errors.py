"""The error message of a script."""

import pytest

from scaling.core.errors import UserError, refused


@pytest.mark.parametrize("steers", ["\x1b]0;title\x07", "\r\x9b2J", "\u202e\u200b\u2028", "\udcff"])
def test_control_characters_are_escaped_and_spaces_kept(capsys, steers):
    kept = "ü – 2 × 3\n\tb\u00a0=\u202f3\u3000"
    with pytest.raises(SystemExit), refused():
        raise UserError(f"{kept}{steers}")
    assert capsys.readouterr().err == f"error: {kept}{ascii(steers)[1:-1]}\n"
