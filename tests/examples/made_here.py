"""What a record says of where it was made, held against this machine."""

from typing import Any

from scaling.core import environment


def assert_made_here(surroundings: dict[str, Any]) -> None:
    """The environment of a record that a CPU of this machine wrote just now, by this code."""
    here = environment.describe("cpu")
    changing = ("commit", "started", "ended")
    assert {key: value for key, value in surroundings.items() if key not in changing} == {
        key: value for key, value in here.items() if key not in changing
    }
    assert surroundings["started"] < surroundings["ended"] <= here["started"]
    # A commit made while the tests run is no fault; without git there is none to name.
    assert (surroundings["commit"] is None) == (here["commit"] is None)
