"""Encrypts and decrypts messages, windows and heads, each bound to its position."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import ConfigError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to, described
from dragoman.history.storage.protocol import Entry, Row, Session
from dragoman.history.storage.sealed.keyring import (
    Keyring,
    Sealed,
    head_bound,
    is_sealed_as,
    life_in,
    message_bound,
    place_in,
    read_sealed,
    window_bound,
)
from dragoman.history.storage.sealed.state import State, misfit
from dragoman.model import document

Field = Literal["window", "windows"]
PLAIN = (
    "it is not encrypted. If the store was not encrypted before, open it once with"
    " accept_plain=True and call rotate() (`dragoman history rotate --accept-plain`); otherwise,"
    " somebody without the keys wrote it"
)
ALTERED = "it was altered, moved, or written by somebody without the keys"
GONE = "its seal is missing: somebody without the keys removed it, or rewrote the session"
FORGED = "its seal was altered, or is another session's"
DAMAGED = "c1-damaged"  # an invalid checksum, which no row has
_HIDDEN = document.write("SealedMessage", None)
_STATES = msgspec.json.Decoder(State)


class Opened(msgspec.Struct, frozen=True):
    """A row as returned to callers, and what is wrong with it, or `None`."""

    row: Row
    problem: str | None = None


class Records:
    """Encrypts and decrypts records with a keyring."""

    def __init__(self, keyring: Keyring, *, accept_plain: bool) -> None:
        self.keyring = keyring
        self.accept_plain = accept_plain

    # --- messages

    def sealed(
        self, identity: SessionIdentity, entry: Entry, life: str, branch: int, seq: int
    ) -> Row:
        """Encrypts a message with the current key, at its position; returns the row to store."""
        place = place_in(life, branch, seq)
        bound = message_bound(identity, entry, place)
        body = self.keyring.seal("SealedMessage", entry.body, bound, place)
        return Row(entry.id, body, entry.at, entry.model, entry.usage, seq=seq, branch=branch)

    def body_in(self, identity: SessionIdentity, row: Row, state: State | None) -> bytes | None:
        """Decrypts a stored row; `None` if it was not written there by somebody with the keys.

        Without a state, the row has to prove itself. Raises `ConfigError` if a key is missing.
        """
        if damage_to(row, described(row)) is not None:
            return None
        if not is_sealed(row.body):
            is_accepted = self.accept_plain and (state is None or not state.bound)
            return row.body if is_accepted else None
        sealed = read_sealed("SealedMessage", row.body)
        if sealed is None or not _is_placed(sealed, row, state):
            return None
        is_known = state is None or sealed.label in state.keys
        if not is_known and self.keyring.problem_with(sealed) is not None:
            return None  # no message of the session uses such a key: it was altered
        return self.keyring.open(sealed, message_bound(identity, row, sealed.place))

    def opened(self, identity: SessionIdentity, row: Row, state: State | None) -> Opened:
        """A row as returned to callers: decrypted, or marked as damaged."""
        body = self.body_in(identity, row, state)
        if body is not None:
            return Opened(_with_body(row, body))
        if is_sealed(row.body) or (self.accept_plain and damage_to(row) is not None):
            return Opened(msgspec.structs.replace(row, checksum=DAMAGED), ALTERED)
        # Content that anybody may have written is not even shown.
        return Opened(msgspec.structs.replace(row, body=_HIDDEN, checksum=DAMAGED), PLAIN)

    def is_current(self, row: Row) -> bool:
        """Whether a row has a position and uses the current key, according to its header."""
        sealed = read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None
        return (
            sealed is not None and sealed.place is not None and sealed.label == self.keyring.label
        )

    # --- windows

    def sealed_window(
        self, identity: SessionIdentity, name: Field, raw: bytes | None, life: str | None
    ) -> bytes | None:
        """Encrypts a window with the current key; an encrypted one is returned unchanged."""
        if raw is None or is_sealed_as("SealedWindow", raw):
            return raw
        return self.keyring.seal("SealedWindow", raw, window_bound(identity, name, life), life)

    def window_in(self, session: Session, name: Field, state: State | None) -> bytes | None:
        """Decrypts a window; `None` if there is none, or it can't be decrypted."""
        raw: bytes | None = getattr(session, name)
        if raw is None:
            return None
        is_bound = state is not None and state.bound
        if not is_sealed_as("SealedWindow", raw):
            return raw if self.accept_plain and not is_bound else None
        sealed = read_sealed("SealedWindow", raw)
        if sealed is None or (sealed.place is None and is_bound):
            return None
        if state is not None and (
            sealed.place not in {None, state.life} or self.keyring.problem_with(sealed) is not None
        ):
            return None  # the head was decrypted; a window can be recomputed
        return self.keyring.open(sealed, window_bound(session.identity, name, sealed.place))

    def has_broken_window(self, session: Session, state: State | None) -> bool:
        """Whether a window can't be decrypted; `window` is the predecessor of `windows`."""
        name: Field = "window" if session.windows is None else "windows"
        return getattr(session, name) is not None and self.window_in(session, name, state) is None

    def is_current_window(self, raw: bytes, life: str | None) -> bool:
        """Whether a window is of this life and uses the current key, according to its header."""
        sealed = read_sealed("SealedWindow", raw)
        return sealed is not None and (sealed.place, sealed.label) == (life, self.keyring.label)

    # --- heads

    def head(self, identity: SessionIdentity, state: State) -> bytes:
        """Encrypts a state, to be stored with its session."""
        raw = msgspec.json.encode(state)
        return self.keyring.seal("SealedHead", raw, head_bound(identity))

    def state_in(self, session: Session) -> tuple[State | None, str | None]:
        """Decrypts a session's seal, if it has one; returns the state, and what is wrong.

        Raises `ConfigError` if its key is missing.
        """
        if session.seal is None:
            return None, None
        sealed = read_sealed("SealedHead", session.seal)
        raw = None if sealed is None else self.keyring.open(sealed, head_bound(session.identity))
        if raw is None:
            return None, FORGED
        try:
            state = _STATES.decode(raw)
        except msgspec.MsgspecError:  # decrypted, but of a later format
            return None, "its seal has a format that this version of dragoman does not support"
        return state, misfit(session, state)

    def is_current_head(self, raw: bytes) -> bool:
        """Whether a head uses the current key."""
        sealed = read_sealed("SealedHead", raw)
        return sealed is not None and sealed.label == self.keyring.label


def _with_body(row: Row, body: bytes) -> Row:
    """A decrypted row. It has just been authenticated, so it needs no checksum.

    The stored checksum covered the encrypted form; storing the row again creates a new one.
    """
    return Row(row.id, body, row.at, row.model, row.usage, seq=row.seq, branch=row.branch)


def _is_placed(sealed: Sealed, row: Row, state: State | None) -> bool:
    """Whether a record is valid at the position where it was found."""
    if sealed.place is None:
        return state is None or not state.bound
    life = life_in(sealed.place) if state is None else state.life
    return sealed.place == place_in(life, row.branch, row.seq)


def has_place(row: Row) -> bool:
    """Whether a row was written by a version that also writes seals."""
    sealed = read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None
    return sealed is not None and sealed.place is not None


def refuse_plain(rows: list[Opened]) -> None:
    """Raises if all rows are in plain text, because the store was never encrypted."""
    if rows and all(each.problem == PLAIN for each in rows):
        msg = f"the history can't be read: {PLAIN}"
        raise ConfigError(msg)
