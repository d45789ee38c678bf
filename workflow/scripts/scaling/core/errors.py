"""The error a user can act on, and how a script ends with it."""

import sys
from collections.abc import Callable
from typing import TypeVar

Main = TypeVar("Main", bound=Callable[[], None])


class UserError(Exception):
    """A mistake that the user can fix. Its message is one sentence: what, where, what to do."""


def program(main: Main) -> Main:
    """Run a script's main(), the last of its module, where that is what was started.

    A UserError ends it with its one sentence and exit status 1.
    """
    if main.__module__ == "__main__":
        try:
            main()
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
    return main
