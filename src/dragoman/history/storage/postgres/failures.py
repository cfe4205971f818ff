"""What PostgreSQL reports, in our words. Its own may quote values, so they are not passed on."""

from __future__ import annotations

from dragoman.errors import StoreError

# The server ends the connection with these, or refuses one for now.
_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03"}
AGAIN = {"40001", "40P01"}
NOTHING = "nothing was written"
UNKNOWN = (
    "it is not known whether the write came through: load the session again to see, or write the"
    " same messages again (they are not stored twice)"
)
DUPLICATE = "23505"
READ_ONLY = "25006"


class Refused(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The server refused a statement, and undid it."""

    def __init__(self, name: str, state: str, constraint: str | None = None) -> None:
        reason = _REASONS.get(state) or _CLASSES.get(state[:2])
        reason = reason or f"PostgreSQL reports {state}, see its manual's list of error codes"
        super().__init__(f"the store {name} failed: {reason}; {NOTHING}")
        self.state = state
        self.constraint = constraint


class Late(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """A statement took too long and was given up."""

    def __init__(self, name: str, seconds: float, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} did not answer within {seconds:g} seconds; {outcome}")
        self.seconds = seconds


class Lost(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The connection broke."""

    def __init__(self, name: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the connection to the store {name} was lost; {outcome}")


class Unreachable(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """There is no connection to be had."""

    def __init__(self, name: str, reason: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} can't be reached: {reason}; {outcome}")
        self.reason = reason


def is_lost(state: str | None) -> bool:
    """Whether an error with this code (None: the client's own) has ended its connection."""
    return state in _LOST or (state or "").startswith("08")


_REASONS = {
    "22003": "a number is larger than its column can hold",
    "25006": "the server is read-only, as a replica is; name the primary in the URL (see"
    " target_session_attrs in PostgreSQL's manual)",
    "3F000": "there is no such schema",
    "42501": "the user may not do this; grant it the rights, or let another user open the store"
    " once to make its tables",
    "42P01": "its tables are gone; open the store again to make new ones",
    "42P07": "the schema holds another program's tables; name a schema of its own for the store",
    "53100": "the server's disk is full; make room and try again",
    "53300": "the server has no connection left; raise its max_connections or lower `connections`",
    "54000": "a message's id is longer than PostgreSQL can index, which is about 2,700 bytes",
    "57014": "the server gave the statement up after its time limit",
    "26000": "a pooler mixed up prepared statements; add prepared=no to the URL",
    "42P05": "a pooler mixed up prepared statements; add prepared=no to the URL",
}
_CLASSES = {
    "22": "a value is not one that PostgreSQL can hold",
    "28": "the user or password is wrong",
    "40": "another write to the same rows was under way; try again",
    "53": "the server is out of memory or another resource",
    "55": "the server is busy with the tables",
    "58": "the server's disk can't be read or written",
    "XX": "the server's data is damaged; see its log",
}
