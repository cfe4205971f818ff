"""Encrypts and decrypts what a store keeps: messages, windows and heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from dragoman.errors import ConfigError
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to, described
from dragoman.history.storage.protocol import Row, Session, placed
from dragoman.history.storage.sealed.keyring import (
    Keyring,
    Sealed,
    head_bound,
    is_sealed_as,
    life_in,
    message_bound,
    place_in,
    read_sealed,
    windows_bound,
)
from dragoman.history.storage.sealed.state import State, misfit
from dragoman.model import document

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

    def sealed(self, digest: str, row: Row, life: str) -> Row:
        """Encrypts a message with the current key, at its position. A damaged one stays damaged."""
        if is_sealed(row.body):  # it could not be decrypted
            return msgspec.structs.replace(row, checksum=DAMAGED)
        place = place_in(life, row.branch, row.seq)
        body = self.keyring.seal(
            "SealedMessage", row.body, message_bound(digest, row, place), place
        )
        made = placed(
            Row(row.id, body, row.at, row.model, row.usage, seq=row.seq), row.seq, row.branch
        )
        if damage_to(row) is None:
            return made
        return msgspec.structs.replace(made, checksum=DAMAGED)  # encrypting it does not repair it

    def body_in(self, digest: str, row: Row, state: State | None) -> bytes | None:
        """Decrypts a stored row; `None` if it was not written there by somebody with the keys.

        Without a state, the row has to prove itself. Raises `ConfigError` if a key is missing.
        """
        if damage_to(row, described(row)) is not None:
            return None
        if not is_sealed(row.body):
            is_accepted = self.accept_plain and (state is None or not state.bound)
            return row.body if is_accepted else None
        sealed = read_sealed("SealedMessage", row.body)
        if sealed is None or sealed.place is None or not _is_placed(sealed.place, row, state):
            return None
        is_known = state is None or sealed.label in state.keys
        if not is_known and self.keyring.problem_with(sealed) is not None:
            return None  # no message of the session uses such a key: it was altered
        return self.keyring.open(sealed, message_bound(digest, row, sealed.place))

    def opened(self, digest: str, row: Row, state: State | None) -> Opened:
        """A row as returned to callers: decrypted, or marked as damaged."""
        body = self.body_in(digest, row, state)
        if body is not None:
            # It has just been authenticated, so it needs no checksum; storing it makes a new one.
            return Opened(
                Row(row.id, body, row.at, row.model, row.usage, seq=row.seq, branch=row.branch)
            )
        if is_sealed(row.body) or (self.accept_plain and damage_to(row) is not None):
            return Opened(msgspec.structs.replace(row, checksum=DAMAGED), ALTERED)
        # Content that anybody may have written is not even shown.
        return Opened(msgspec.structs.replace(row, body=_HIDDEN, checksum=DAMAGED), PLAIN)

    def is_current(self, row: Row) -> bool:
        """Whether a row uses the current key, according to its header."""
        sealed = read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None
        return (
            sealed is not None and sealed.place is not None and sealed.label == self.keyring.label
        )

    # --- windows

    def sealed_windows(self, digest: str, raw: bytes | None, life: str) -> bytes | None:
        """Encrypts windows with the current key."""
        if raw is None:
            return None
        return self.keyring.seal("SealedWindow", raw, windows_bound(digest, life), life)

    def windows_in(self, session: Session, state: State | None) -> bytes | None:
        """Decrypts a session's windows; `None` if there are none, or they can't be decrypted."""
        raw = session.windows
        if raw is None:
            return None
        if not is_sealed_as("SealedWindow", raw):
            is_accepted = self.accept_plain and (state is None or not state.bound)
            return raw if is_accepted else None
        sealed = read_sealed("SealedWindow", raw)
        if sealed is None or sealed.place is None:
            return None
        if state is not None and (
            sealed.place != state.life or self.keyring.problem_with(sealed) is not None
        ):
            return None  # the head was decrypted; windows can be recomputed
        return self.keyring.open(sealed, windows_bound(session.identity.digest, sealed.place))

    def are_current_windows(self, raw: bytes | None, life: str) -> bool:
        """Whether windows are of this life and use the current key, according to their header."""
        sealed = None if raw is None else read_sealed("SealedWindow", raw)
        return raw is None or (
            sealed is not None and (sealed.place, sealed.label) == (life, self.keyring.label)
        )

    # --- heads

    def head(self, digest: str, state: State) -> bytes:
        """Encrypts a state, to be stored with its session."""
        return self.keyring.seal("SealedHead", msgspec.json.encode(state), head_bound(digest))

    def state_in(self, session: Session) -> tuple[State | None, str | None]:
        """Decrypts a session's seal, if it has one; returns the state, and what is wrong.

        Raises `ConfigError` if its key is missing.
        """
        if session.seal is None:
            return None, None
        sealed = read_sealed("SealedHead", session.seal)
        bound = head_bound(session.identity.digest)
        raw = None if sealed is None else self.keyring.open(sealed, bound)
        if raw is None:
            return None, FORGED
        try:
            state = _STATES.decode(raw)
        except msgspec.MsgspecError:  # decrypted, but of a later format
            return None, "its seal has a format that this version of dragoman does not support"
        return state, misfit(session, state)

    def is_current_head(self, raw: bytes | None) -> bool:
        """Whether a head uses the current key."""
        sealed = None if raw is None else read_sealed("SealedHead", raw)
        return sealed is not None and sealed.label == self.keyring.label


def _is_placed(place: str, row: Row, state: State | None) -> bool:
    """Whether a record is valid at the position where it was found."""
    life = life_in(place) if state is None else state.life
    return place == place_in(life, row.branch, row.seq)


def has_place(row: Row) -> bool:
    """Whether a row is an encrypted one."""
    return _read(row) is not None


def _read(row: Row) -> Sealed | None:
    return read_sealed("SealedMessage", row.body) if is_sealed(row.body) else None


def life_of(rows: Iterable[Row]) -> str | None:
    """The life of most of these rows."""
    read = map(_read, rows)
    lives = Counter(life_in(each.place) for each in read if each is not None and each.place)
    return lives.most_common(1)[0][0] if lives else None


def refuse_plain(rows: Sequence[Opened]) -> None:
    """Raises if all rows are in plain text, because the store was never encrypted."""
    if rows and all(each.problem == PLAIN for each in rows):
        msg = f"the history can't be read: {PLAIN}"
        raise ConfigError(msg)
