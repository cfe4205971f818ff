"""`reveal`: shows content that is hidden by default."""

from __future__ import annotations

from contextvars import Token
from typing import Self

from dragoman._reveal import everywhere, here
from dragoman.model.value import expect


class reveal:  # noqa: N801 - used as a function, and in `with`
    """Shows content in reprs, and the provider's error text in exceptions, for debugging.

    ```python
    with dragoman.reveal():        # in this block only, including tasks started in it
        print(repr(message))
    dragoman.reveal()              # from now on, in the whole process
    dragoman.reveal(False)         # off again
    ```

    The environment variable `DRAGOMAN_REVEAL=1` turns it on for the whole process.
    """

    def __init__(self, enabled: bool = True) -> None:  # noqa: FBT001, FBT002 - reveal(False) reads well
        expect(enabled, bool, "the argument of reveal")  # a mistake must not reveal content
        self._shown = enabled
        self._before = everywhere[0]
        self._token: Token[bool | None] | None = None
        everywhere[0] = enabled

    def __enter__(self) -> Self:
        everywhere[0] = self._before  # used in `with`: undo the process-wide setting
        self._token = here.set(self._shown)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._token is not None:
            here.reset(self._token)
            self._token = None

    def __repr__(self) -> str:
        return f"reveal({'' if self._shown else 'False'})"
