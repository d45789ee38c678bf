"""The style in which the figures are drawn."""

import pytest

from scaling.figures import style


@pytest.fixture(autouse=True)
def common_style():
    with style.style("test"):
        yield
