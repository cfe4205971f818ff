"""Translates PostgreSQL's errors. Its own messages may quote values, so they are not passed on."""

from __future__ import annotations

from dragoman.errors import StoreError

# With these, the server closes the connection, or temporarily refuses one.
_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03"}
AGAIN = {"40001", "40P01"}
NOTHING = "nothing was written"
UNKNOWN = (
    "it is unknown whether the write succeeded: reload the session to find out, or write the"
    " same messages again (they are not stored twice)"
)
DUPLICATE = "23505"
READ_ONLY = "25006"


class Refused(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The server rejected a statement and rolled it back."""

    def __init__(self, name: str, state: str, constraint: str | None = None) -> None:
        reason = _REASONS.get(state) or _CLASSES.get(state[:2])
        reason = reason or f"PostgreSQL reports error code {state}, see its manual"
        super().__init__(f"the store {name} failed: {reason}; {NOTHING}")
        self.state = state
        self.constraint = constraint


class Late(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """A statement timed out."""

    def __init__(self, name: str, seconds: float, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} did not respond within {seconds:g} seconds; {outcome}")
        self.seconds = seconds


class Lost(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The connection broke."""

    def __init__(self, name: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the connection to the store {name} was lost; {outcome}")


class Unreachable(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """No connection is available."""

    def __init__(self, name: str, reason: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} can't be reached: {reason}; {outcome}")
        self.reason = reason


def is_lost(state: str | None) -> bool:
    """Whether an error with this code (`None`: a client error) ended the connection."""
    return state in _LOST or (state or "").startswith("08")


_REASONS = {
    "22003": "a number is too large for its column",
    "25006": "the server is read-only, such as a replica; use the primary in the URL (see"
    " target_session_attrs in PostgreSQL's manual)",
    "3F000": "the schema does not exist",
    "42501": "permission denied; grant the user the permission, or let another user open the"
    " store once to create its tables",
    "42P01": "its tables are missing; open the store again to create them",
    "42P07": "the schema contains another program's tables; use a separate schema for the store",
    "53100": "the server's disk is full; free some space and try again",
    "53300": "the server has no free connections; raise its max_connections or lower `connections`",
    "54000": "a message's id is too long for PostgreSQL to index (about 2,700 bytes)",
    "57014": "the server cancelled the statement because of its timeout",
    "26000": "a pooler mixed up prepared statements; add prepared=no to the URL",
    "42P05": "a pooler mixed up prepared statements; add prepared=no to the URL",
}
_CLASSES = {
    "22": "PostgreSQL can't store a value",
    "28": "the user or password is wrong",
    "40": "a concurrent write to the same rows; try again",
    "53": "the server is out of memory or another resource",
    "55": "the tables are locked",
    "58": "the server's disk can't be read or written",
    "XX": "the server's data is damaged; see its log",
}
