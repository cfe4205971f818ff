"""Costs of the answers in a store: each is read, and priced as it was billed.

Imported answers are priced as their model's vendor would have billed them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from dragoman.cli.costs import dollars

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Filter, Group, Row, Session, Storage
    from dragoman.model.messages import Message


class Spent(NamedTuple):
    """Dollars, and the number of answers whose cost is unknown."""

    cost: Decimal = Decimal(0)
    unknown: int = 0
    answers: int = 0

    def __str__(self) -> str:
        if self.unknown == self.answers:
            return dollars(None)
        more = f" + {self.unknown:,} unknown" if self.unknown else ""
        return f"{dollars(self.cost)}{more}"


async def spent(storage: Storage, by: Group, which: Filter) -> dict[str | None, Spent]:
    """The cost by session, user, model or day."""
    from dragoman.errors import Corrupt
    from dragoman.history.records import message_of
    from dragoman.history.transfer import every_row, every_session
    from dragoman.providers.prices import Prices

    prices, found = Prices(), dict[str | None, Spent]()
    async for session in every_session(storage, which):
        async for row in every_row(storage, session):
            if row.usage is None:
                continue
            try:
                cost = prices.cost_of_message(_at_vendor(message_of(row.body)))
            except Corrupt:  # `verify` reports it
                cost = None
            key = _key(by, session, row)
            cost_so_far, unknown, answers = found.get(key, Spent())
            found[key] = Spent(cost_so_far + (cost or 0), unknown + (cost is None), answers + 1)
    return found


def _at_vendor(message: Message) -> Message:
    """An imported answer names its model, not who ran it: as that of the model's vendor."""
    from dragoman.wire.dialect import dialect, is_dialect

    origin = message.origin
    if origin is None or origin.provider is not None or not is_dialect(origin.dialect):
        return message
    vendor = dialect(origin.dialect).target.provider
    return message.replace_unchecked(origin=origin.replace(provider=vendor))


def _key(by: Group, session: Session, row: Row) -> str | None:
    from dragoman.history.storage.scanning import day_of

    if by == "session":
        return session.identity.digest
    if by == "user":
        return session.identity.user
    return row.model if by == "model" else day_of(row.at)
