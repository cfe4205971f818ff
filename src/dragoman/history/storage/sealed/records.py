"""What an encrypted store keeps: the state of a session as its owner left it, and its records.

It has the number of messages, and the sum of a keyed hash of each. So updating it costs the same
however long the history is, and reading all messages shows whether one is missing, added, or
reverted to an earlier state. The key of the hash (`salt`) is random and encrypted with the rest, so
sums can't be forged by searching for matching messages.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from time import time

import msgspec

from dragoman.errors import ConfigError
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to, described
from dragoman.history.storage.protocol import MAIN, Fork, Row, Session, placed
from dragoman.history.storage.sealed.keyring import (
    Keyring,
    Sealed,
    head_bound,
    is_sealed_as,
    life_in,
    message_bound,
    place_in,
    read_sealed,
    weight,
    windows_bound,
)
from dragoman.model import document

_SUM = 1 << 256
_STEP = 1e-3  # seconds


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session's counters and branches, and the sum of its messages."""

    life: str
    """The life that the positions of its messages belong to."""
    made: float
    """When it was created, cleared or repaired; the state with the later time is newer."""
    version: int
    last_seq: int
    created_at: float
    salt: bytes
    rows: int = 0
    total: str = "0"
    active: int = MAIN
    left: tuple[int, ...] = ()
    """Branches that may be active in plain text instead: until November 2026, activating a branch
    took two steps."""
    forks: tuple[tuple[int, int, int], ...] = ()
    bound: bool = True
    """Whether all messages are encrypted; then others are rejected."""
    keys: dict[str, int] = {}
    """The number of messages per key (`Sealed.label`)."""
    step: int = 0
    """Counts changes that have no version of their own, such as of the active branch."""

    def __repr__(self) -> str:
        return f"State(version {self.version})"  # the salt is secret

    def is_older_than(self, other: State) -> bool:
        """Whether it is an earlier state of the same session, or a conflicting one."""
        mine, others = self.mark, other.mark
        return mine[:3] < others[:3] or (mine[:3] == others[:3] and mine != others)

    @property
    def mark(self) -> tuple[float, int, int, str, str]:
        """What orders states: the greater is newer, by its first three parts."""
        return self.made, self.version, self.step, self.life, self.total

    def of(self, session: Session) -> State:
        """The state with a session's numbers and branches."""
        numbers = (session.version, session.last_seq, session.active, forks_of(session.forks))
        if numbers == (self.version, self.last_seq, self.active, self.forks):
            return self
        version, last_seq, active, forks = numbers
        step = self.step + 1 if version == self.version else 0
        return msgspec.structs.replace(
            self, version=version, last_seq=last_seq, active=active, forks=forks, left=(), step=step
        )

    def written(
        self, added: Sequence[Row], removed: Sequence[Row] = (), under: str | None = None
    ) -> State:
        """The state after adding and removing rows; `under` is the key of those added, if known."""
        if not added and not removed:
            return self
        total = int(self.total, 16) + self._sum(added) - self._sum(removed)
        rows = self.rows + len(added) - len(removed)
        keys = _counted(self.keys, added, under, removed)
        return msgspec.structs.replace(
            self,
            rows=rows,
            total=f"{total % _SUM:x}",
            keys=keys,
            bound=self.bound or sum(keys.values()) == rows,
            step=self.step + 1,
        )

    def of_rows(self, rows: Sequence[Row]) -> State:
        """The state with exactly these rows."""
        return msgspec.structs.replace(self, rows=0, total="0", keys={}).written(rows)

    def sum_of(self, rows: Iterable[Row]) -> str:
        """The sum of these rows, to be compared with `total`."""
        return f"{self._sum(rows) % _SUM:x}"

    def _sum(self, rows: Iterable[Row]) -> int:
        return sum([weight(self.salt, row, row.branch, row.seq) for row in rows])


def new_state(
    session: Session, *, after: State | None = None, life: str | None = None, bound: bool = True
) -> State:
    """A session without messages, in a new life; newer than the state it comes `after`."""
    # A clock that was set back must not make a new state look old.
    made = time() if after is None else max(time(), after.made + _STEP)
    return State(
        life or os.urandom(8).hex(), made, session.version, session.last_seq,
        float(session.created_at), os.urandom(32), active=session.active,
        forks=forks_of(session.forks), bound=bound,
    )  # fmt: skip


def _counted(
    keys: dict[str, int], added: Sequence[Row], under: str | None, removed: Sequence[Row]
) -> dict[str, int]:
    if under is not None and not removed:
        return {**keys, under: keys.get(under, 0) + len(added)}
    counts = Counter(keys)
    counts.update(_labels(added) if under is None else {under: len(added)})
    counts.subtract(_labels(removed))
    return {label: count for label, count in counts.items() if count > 0}


def _labels(rows: Sequence[Row]) -> Counter[str]:
    read = (read_sealed("SealedMessage", row.body) for row in rows)
    return Counter(sealed.label for sealed in read if sealed is not None)


def misfit(session: Session, state: State) -> str | None:
    """How a session in plain text differs from its state; `None` if it does not."""
    if session.version != state.version:
        earlier = "an earlier" if state.version < session.version else "a later"
        return (
            f"its seal is of {earlier} version: somebody without the keys wrote to it, or restored"
            " an earlier state"
        )
    if session.last_seq != state.last_seq or session.created_at != state.created_at:
        return "its counters were altered without the keys"
    if forks_of(session.forks) != state.forks:
        return "its branches were altered without the keys"
    if session.active != state.active and session.active not in state.left:
        return "its active branch was altered without the keys"
    return None


def forks_of(forks: Iterable[Fork]) -> tuple[tuple[int, int, int], ...]:
    """Branches in the form of a state."""
    return tuple(sorted((fork.number, fork.parent, fork.at) for fork in forks))


# --- encrypts and decrypts what a store keeps: messages, windows and heads


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
