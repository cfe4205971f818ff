"""The state of a session as its owner left it: what the sealed head holds.

It says how many messages there are, and the sum of a keyed hash of each of them. So it is brought
up to date with every write at the same cost, however long the history is, and whoever has read
all messages can tell whether one is missing, too many, or put back to an earlier state of its own.
The key of the hash (`salt`) is random and under encryption with the rest: sums can't be forged by
looking for messages that fit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from time import time
from typing import Any

import msgspec

from dragoman.history.storage.protocol import MAIN, Fork, Row, Session
from dragoman.history.storage.sealed.binding import weight
from dragoman.history.storage.sealed.keyring import read_sealed

_SUM = 1 << 256
_STEP = 1e-3  # seconds


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session's numbers and branches, and what its messages add up to."""

    life: str
    """Which the places of its messages are in."""
    made: float
    """When it was made, cleared or repaired: of two, the later is the newer, whatever else."""
    version: int
    last_seq: int
    created_at: float
    salt: bytes
    rows: int = 0
    total: str = "0"
    active: int = MAIN
    left: tuple[int, ...] = ()
    """What the branch in plain text may be until `active` has got there; see `activated`."""
    forks: tuple[tuple[int, int, int], ...] = ()
    bound: bool = True
    """Whether all messages are bound to their places: then others are refused."""
    keys: dict[str, int] = {}
    """How many messages are under which key (`Sealed.label`)."""

    def __repr__(self) -> str:
        return f"State(version {self.version})"  # the salt is a secret

    @property
    def branches(self) -> tuple[int, ...]:
        """The numbers of all branches."""
        return (MAIN, *(number for number, _, _ in self.forks))

    def is_older_than(self, other: State) -> bool:
        """Whether it is an earlier state of the same session, or one that never was."""
        if self.made != other.made:
            return self.made < other.made
        if self.version != other.version:
            return self.version < other.version
        return (self.life, self.total) != (other.life, other.total)

    # --- what follows from it; each is a version later

    def written(
        self,
        *,
        added: Sequence[Row] = (),
        under: str | None = None,
        removed: Sequence[Row] = (),
        **changes: Any,
    ) -> State:
        """After a write that stored and took away these rows, `under` one key if that is known."""
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
        """After making a branch, which is the active one then."""
        number = max(self.branches) + 1
        return self.written(forks=(*self.forks, (number, parent, at)), active=number, left=())

    def activated(self, branch: int, shown: int) -> State:
        """After choosing another branch, while the plain text still shows one from before.

        This state is stored first, and the branch then: it takes two steps, because a backend
        gives no new version to the second, and somebody who missed it would undo it.
        """
        return self.written(active=branch, left=tuple(sorted({self.active, shown})))

    def of_rows(self, rows: Sequence[Row], **changes: Any) -> State:
        """The same with these rows and no others, at the version that is given or its own."""
        empty = msgspec.structs.replace(self, rows=0, total="0", keys={}, version=self.version - 1)
        return msgspec.structs.replace(empty.written(added=rows), **changes)

    def sum_of(self, rows: Iterable[Row]) -> str:
        """What these rows add up to, to be compared with `total`."""
        return f"{self._sum(rows) % _SUM:x}"

    def _sum(self, rows: Iterable[Row]) -> int:
        return sum([weight(self.salt, row, row.branch, row.seq) for row in rows])


def new_life() -> str:
    """A life that no session has had."""
    return os.urandom(8).hex()


def new_state(
    created_at: float, *, version: int = 0, last_seq: int = 0, after: State | None = None
) -> State:
    """A session without messages, in a life of its own; newer than the state that it is `after`."""
    salt = os.urandom(32)
    return State(new_life(), _later(after), version, last_seq, float(created_at), salt)


def _later(after: State | None) -> float:
    # A clock that was put back must not make what is new look old.
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
    """Where a session in plain text is not as its owner left it, in plain words; None: nowhere."""
    if session.version != state.version:
        earlier = "an earlier" if state.version < session.version else "a later"
        return (
            f"its seal is of {earlier} version: something was written to it without the keys, or"
            " put back"
        )
    if session.last_seq != state.last_seq or session.created_at != state.created_at:
        return "its numbers were altered without the keys"
    if forks_of(session.forks) != state.forks:
        return "its branches were altered without the keys"
    if session.active != state.active and session.active not in state.left:
        return "the branch that it opens on was altered without the keys"
    return None


def forks_of(forks: Iterable[Fork]) -> tuple[tuple[int, int, int], ...]:
    """Branches as a state has them."""
    return tuple(sorted((fork.number, fork.parent, fork.at) for fork in forks))
