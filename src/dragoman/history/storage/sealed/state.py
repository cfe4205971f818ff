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
