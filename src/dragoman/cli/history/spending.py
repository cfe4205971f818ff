"""Costs of the answers in a store: each is read, and priced as it was billed.

Imported answers are priced as their model's vendor would have billed them. Many come without
usage: it is estimated, with the conversation before an answer as its prompt.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from dragoman.cli.costs import dollars
from dragoman.model.usage import Usage

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Filter, Group, Row, Session, Storage, Total
    from dragoman.model.messages import Message

_VENDORS = {"chatgpt": "openai"}
"""Whose models answered in the conversations that these export (those of Claude name no model)."""


class Spent(NamedTuple):
    """Dollars, and the number of answers whose cost is unknown."""

    cost: Decimal = Decimal(0)
    unknown: int = 0
    answers: int = 0
    estimated: int = 0
    """How many of the answers reported no usage."""
    usage: Usage = Usage()
    """The estimated usage of these."""

    def __str__(self) -> str:
        if self.unknown == self.answers:
            return dollars(None)
        more = f" + {self.unknown:,} unknown" if self.unknown else ""
        return f"{'~' if self.estimated else ''}{dollars(self.cost)}{more}"

    def plus(self, cost: Decimal | None, estimate: Usage | None) -> Spent:
        """With one more answer, and its usage if that is estimated."""
        usage = self.usage if estimate is None else self.usage + estimate
        return Spent(
            self.cost + (cost or 0), self.unknown + (cost is None), self.answers + 1,
            self.estimated + (estimate is not None), usage,
        )  # fmt: skip


async def spent(storage: Storage, by: Group, which: Filter) -> dict[str | None, Spent]:
    """The cost by session, user, model or day."""
    from dragoman.errors import Corrupt
    from dragoman.history.records import message_of
    from dragoman.history.transfer import every_row, every_session
    from dragoman.providers.prices import Prices

    prices, found = Prices(), dict[str | None, Spent]()
    async for session in every_session(storage, which):
        sizes = _Sizes(session)
        async for row in every_row(storage, session):
            cost = estimate = None
            try:
                message = _at_vendor(message_of(row.body))
            except Corrupt:  # `verify` reports it
                pass
            else:
                estimate = sizes.usage_of(row, message)
                usage = message.usage if estimate is None else estimate
                cost = prices.cost_of_message(message.replace_unchecked(usage=usage))
            if row.usage is not None or estimate is not None:
                key = _key(by, session, row)
                found[key] = found.get(key, Spent()).plus(cost, estimate)
    return found


def with_estimates(totals: list[Total], spent: dict[str | None, Spent]) -> list[Total]:
    """The totals, with the answers that reported no usage."""
    from dragoman.history.storage.protocol import Total

    sums = {total.key: total for total in totals}
    for key, found in spent.items():
        if found.estimated:
            known = sums.get(key, Total(key, Usage(), 0))
            sums[key] = Total(key, known.usage + found.usage, known.messages + found.estimated)
    return [sums[key] for key in sorted(sums, key=lambda key: (key is not None, key or ""))]


class _Sizes:
    """The estimated sizes of a session's messages, as its branches lead to them."""

    def __init__(self, session: Session) -> None:
        self._forks = {fork.number: fork for fork in session.forks}
        self._sums: dict[int, tuple[list[int], list[float]]] = {}
        """By branch: numbers of its messages, and the size of all up to each."""

    def usage_of(self, row: Row, message: Message) -> Usage | None:
        """Count a message; the estimated usage of an answer that reported none."""
        from dragoman.history.part_tokens import size_of_message
        from dragoman.model.roles import Role

        seqs, sums = self._sums.setdefault(row.branch, ([], []))
        before = sums[-1] if sums else self._up_to_fork(row.branch)
        size = size_of_message(message).total
        seqs.append(row.seq)
        sums.append(before + size)
        if row.usage is not None or message.role is not Role.ASSISTANT:
            return None
        return Usage(ceil(before), ceil(size))

    def _up_to_fork(self, branch: int) -> float:
        """The size of the messages that a branch shares with its parent."""
        fork = self._forks.get(branch)
        if fork is None or fork.parent >= branch:  # a damaged one must not lead to itself
            return 0.0
        seqs, sums = self._sums.get(fork.parent, ([], []))
        place = bisect_right(seqs, fork.at)
        return sums[place - 1] if place else self._up_to_fork(fork.parent)


def _at_vendor(message: Message) -> Message:
    """An imported answer names its model, not who ran it: as that of the model's vendor."""
    from dragoman.wire.dialect import dialect, is_dialect

    origin = message.origin
    if origin is None or origin.provider is not None:
        return message
    vendor = _VENDORS.get(origin.dialect)
    if is_dialect(origin.dialect):
        vendor = dialect(origin.dialect).target.provider
    return message.replace_unchecked(origin=origin.replace(provider=vendor))


def _key(by: Group, session: Session, row: Row) -> str | None:
    from dragoman.history.storage.scanning import day_of

    if by == "session":
        return session.identity.digest
    if by == "user":
        return session.identity.user
    return row.model if by == "model" else day_of(row.at)
