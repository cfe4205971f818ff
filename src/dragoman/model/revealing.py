"""`reveal`: the switch that shows what is hidden by default."""

from __future__ import annotations

from contextvars import Token
from typing import Self

from dragoman._reveal import everywhere, here
from dragoman.model.value import expect


class reveal:  # noqa: N801 - used as a function, and in `with`
    """Show content in reprs, and the provider's own words in errors: for debugging.

    ```python
    with dragoman.reveal():        # in this block, this thread and its tasks only
        print(repr(message))
    dragoman.reveal()              # from here on, everywhere in this process
    dragoman.reveal(False)         # and off again
    ```

    The variable `DRAGOMAN_REVEAL=1` has the same effect for a whole process.
    """

    def __init__(self, shown: bool = True) -> None:  # noqa: FBT001, FBT002 - reveal(False) reads well
        expect(shown, bool, "what reveal is given")  # a mistake must not show secrets
        self._shown = shown
        self._before = everywhere[0]
        self._token: Token[bool | None] | None = None
        everywhere[0] = shown

    def __enter__(self) -> Self:
        everywhere[0] = self._before  # a block is no switch
        self._token = here.set(self._shown)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._token is not None:
            here.reset(self._token)
            self._token = None

    def __repr__(self) -> str:
        return f"reveal({'' if self._shown else 'False'})"
