"""What a history is in the middle of, apart from what is stored."""

from __future__ import annotations

from dragoman.history.pending import Pending
from dragoman.history.truncation import Cut


class State:
    """The changes of a history that are not stored; one for all who look at it (`with_hooks`)."""

    def __init__(self, *, owns_storage: bool) -> None:
        self.pending = Pending()
        self.has_grown = False
        """Whether something was added since the window was last cut."""
        self.cut: Cut | None = None
        """A cut that can't be stored yet, since it was made over what is not saved."""
        self.owns_storage = owns_storage
        """Whether the store is to be closed with the history, and has not been."""
