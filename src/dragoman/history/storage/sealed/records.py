"""Sealing and opening what a store holds: messages, windows and heads, each bound to its place."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import ConfigError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to, described
from dragoman.history.storage.protocol import Entry, Row, Session
from dragoman.history.storage.sealed.binding import (
    head_bound,
    life_in,
    message_bound,
    place_in,
    window_bound,
)
from dragoman.history.storage.sealed.keyring import Keyring, Sealed, is_sealed_as, read_sealed
from dragoman.history.storage.sealed.state import State, misfit
from dragoman.model import document

Field = Literal["window", "windows"]
PLAIN = (
    "it is not encrypted: if the store was not encrypted before, open it once with"
    " accept_plain=True and call rotate() (`dragoman history rotate --accept-plain`); if it was,"
    " somebody without the keys wrote this"
)
ALTERED = "it was altered, or written elsewhere or by somebody without the keys"
GONE = "its seal is gone: somebody without the keys took it away, or wrote the session anew"
FORGED = "its seal was altered, or is another session's"
DAMAGED = "c1-damaged"  # in place of a checksum: no row has it
_HIDDEN = document.write("SealedMessage", None)
_STATES = msgspec.json.Decoder(State)


class Opened(msgspec.Struct, frozen=True):
    """A row as it is handed out, and what is wrong with it, in plain words; None: nothing."""

    row: Row
    problem: str | None = None


class Records:
    """What is sealed with a keyring."""

    def __init__(self, keyring: Keyring, *, accept_plain: bool) -> None:
        self.keyring = keyring
        self.accept_plain = accept_plain

    # --- messages

    def sealed(
        self, identity: SessionIdentity, entry: Entry, life: str, branch: int, seq: int
    ) -> Row:
        """A message under the current key, at its place; as it will be stored."""
        place = place_in(life, branch, seq)
        bound = message_bound(identity, entry, place)
        body = self.keyring.seal("SealedMessage", entry.body, bound, place)
        return Row(entry.id, body, entry.at, entry.model, entry.usage, seq=seq, branch=branch)

    def body_in(self, identity: SessionIdentity, row: Row, state: State | None) -> bytes | None:
        """What a stored row says; None where nobody who had the keys wrote it there.

        Without a state, the row has to prove itself. Raises `ConfigError` where a key is missing.
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
            return None  # no message of the session is under such a key: it was altered
        return self.keyring.open(sealed, message_bound(identity, row, sealed.place))

    def opened(self, identity: SessionIdentity, row: Row, state: State | None) -> Opened:
        """A row as it is handed out: its message in plain text, or marked as damaged."""
        body = self.body_in(identity, row, state)
        if body is not None:
            return Opened(_with_body(row, body))
        if is_sealed(row.body) or (self.accept_plain and damage_to(row) is not None):
            return Opened(msgspec.structs.replace(row, checksum=DAMAGED), ALTERED)
        # What anybody may have written is not even shown.
        return Opened(msgspec.structs.replace(row, body=_HIDDEN, checksum=DAMAGED), PLAIN)

    def is_current(self, row: Row) -> bool:
        """Whether a row says that it is at a place, under the current key."""
        sealed = read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None
        return (
            sealed is not None and sealed.place is not None and sealed.label == self.keyring.label
        )

    # --- windows

    def sealed_window(
        self, identity: SessionIdentity, name: Field, raw: bytes | None, life: str | None
    ) -> bytes | None:
        """A window under the current key; one that is sealed stays as it is."""
        if raw is None or is_sealed_as("SealedWindow", raw):
            return raw
        return self.keyring.seal("SealedWindow", raw, window_bound(identity, name, life), life)

    def window_in(self, session: Session, name: Field, state: State | None) -> bytes | None:
        """A window in plain text; None where there is none, or it can't be opened."""
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
            return None  # the head was opened; a window can be made again
        return self.keyring.open(sealed, window_bound(session.identity, name, sealed.place))

    def has_broken_window(self, session: Session, state: State | None) -> bool:
        """Whether there is a window that can't be opened; `window` is what was before `windows`."""
        name: Field = "window" if session.windows is None else "windows"
        return getattr(session, name) is not None and self.window_in(session, name, state) is None

    def is_current_window(self, raw: bytes, life: str | None) -> bool:
        """Whether a window says that it is in this life, under the current key."""
        sealed = read_sealed("SealedWindow", raw)
        return sealed is not None and (sealed.place, sealed.label) == (life, self.keyring.label)

    # --- heads

    def head(self, identity: SessionIdentity, state: State) -> bytes:
        """A state as it is kept with its session."""
        raw = msgspec.json.encode(state)
        return self.keyring.seal("SealedHead", raw, head_bound(identity))

    def state_in(self, session: Session) -> tuple[State | None, str | None]:
        """What a session's seal says, if it has one, and what is wrong with it or with them.

        Raises `ConfigError` where its key is missing.
        """
        if session.seal is None:
            return None, None
        sealed = read_sealed("SealedHead", session.seal)
        raw = None if sealed is None else self.keyring.open(sealed, head_bound(session.identity))
        if raw is None:
            return None, FORGED
        try:
            state = _STATES.decode(raw)
        except msgspec.MsgspecError:  # with the keys, and yet no state: a later form of it
            return None, "its seal is of a form that this dragoman does not know"
        return state, misfit(session, state)

    def is_current_head(self, raw: bytes) -> bool:
        """Whether a head is under the current key."""
        sealed = read_sealed("SealedHead", raw)
        return sealed is not None and sealed.label == self.keyring.label


def _with_body(row: Row, body: bytes) -> Row:
    """A row in plain text. It has just been authenticated: no checksum tells more.

    Its own was that of what is sealed; whoever stores it again gives it another.
    """
    return Row(row.id, body, row.at, row.model, row.usage, seq=row.seq, branch=row.branch)


def _is_placed(sealed: Sealed, row: Row, state: State | None) -> bool:
    """Whether a record may stand where it is found."""
    if sealed.place is None:
        return state is None or not state.bound
    life = life_in(sealed.place) if state is None else state.life
    return sealed.place == place_in(life, row.branch, row.seq)


def has_place(row: Row) -> bool:
    """Whether a row was written by somebody who wrote a seal as well."""
    sealed = read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None
    return sealed is not None and sealed.place is not None


def refuse_plain(rows: list[Opened]) -> None:
    """Raise where all that was found is in plain text: the store was never encrypted."""
    if rows and all(each.problem == PLAIN for each in rows):
        msg = f"the history can't be read: {PLAIN}"
        raise ConfigError(msg)
