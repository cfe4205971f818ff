"""The content of a session's sealed head: its state as the owner left it.

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
from typing import Any

import msgspec

from dragoman.history.storage.protocol import MAIN, Fork, Row, Session
from dragoman.history.storage.sealed.keyring import read_sealed, weight

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
    """Branches that may be active in plain text until `active` takes effect; see `activated`."""
    forks: tuple[tuple[int, int, int], ...] = ()
    bound: bool = True
    """Whether all messages are bound to their positions; then others are rejected."""
    keys: dict[str, int] = {}
    """The number of messages per key (`Sealed.label`)."""

    def __repr__(self) -> str:
        return f"State(version {self.version})"  # the salt is secret

    @property
    def branches(self) -> tuple[int, ...]:
        """The numbers of all branches."""
        return (MAIN, *(number for number, _, _ in self.forks))

    def is_older_than(self, other: State) -> bool:
        """Whether it is an earlier state of the same session, or a conflicting one."""
        if self.made != other.made:
            return self.made < other.made
        if self.version != other.version:
            return self.version < other.version
        return (self.life, self.total) != (other.life, other.total)

    # --- successors; each increments the version

    def written(
        self,
        *,
        added: Sequence[Row] = (),
        under: str | None = None,
        removed: Sequence[Row] = (),
        **changes: Any,
    ) -> State:
        """The state after adding and removing rows; `under` is the key of those added, if known."""
        total = int(self.total, 16) + self._sum(added)
        if removed:
            total -= self._sum(removed)
        return msgspec.structs.replace(
            self,
            version=self.version + 1,
            rows=self.rows + len(added) - len(removed),
            total=f"{total % _SUM:x}",
            keys=_counted(self.keys, added, under, removed),
            **changes,
        )

    def forked(self, parent: int, at: int) -> State:
        """The state after creating a branch, which becomes the active one."""
        number = max(self.branches) + 1
        return self.written(forks=(*self.forks, (number, parent, at)), active=number, left=())

    def activated(self, branch: int, shown: int) -> State:
        """The state after activating a branch, while the plain text still has the old one.

        This state is stored first, then the branch. It takes two steps because a backend does not
        increment the version for the second, and a writer who missed it would undo it.
        """
        return self.written(active=branch, left=tuple(sorted({self.active, shown})))

    def of_rows(self, rows: Sequence[Row], **changes: Any) -> State:
        """The state with exactly these rows, at the given version or its own."""
        empty = msgspec.structs.replace(self, rows=0, total="0", keys={}, version=self.version - 1)
        return msgspec.structs.replace(empty.written(added=rows), **changes)

    def sum_of(self, rows: Iterable[Row]) -> str:
        """The sum of these rows, to be compared with `total`."""
        return f"{self._sum(rows) % _SUM:x}"

    def _sum(self, rows: Iterable[Row]) -> int:
        return sum([weight(self.salt, row, row.branch, row.seq) for row in rows])


def new_life() -> str:
    """A new, random life."""
    return os.urandom(8).hex()


def new_state(
    created_at: float, *, version: int = 0, last_seq: int = 0, after: State | None = None
) -> State:
    """A session without messages, in a new life; newer than the state it comes `after`."""
    salt = os.urandom(32)
    return State(new_life(), _later(after), version, last_seq, float(created_at), salt)


def _later(after: State | None) -> float:
    # A clock that was set back must not make a new state look old.
    return time() if after is None else max(time(), after.made + _STEP)


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
