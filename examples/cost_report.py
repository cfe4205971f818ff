"""What the conversations of a store have cost, by model and by user.

    python examples/cost_report.py                               # a sample, in memory
    python examples/cost_report.py --store sqlite:///chats.db --since 2026-11-01

Shows how to read all sessions of a store, and how to price a message with list prices or your own.
Messages without a known price are counted separately, never as zero. The command
`dragoman history stats --cost --by model` does the same; start here to write your own report.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter, defaultdict
from datetime import UTC, datetime
from decimal import Decimal

from dragoman import ChatHistory, Message, SessionIdentity, Usage
from dragoman.history import Filter, Storage, open_storage
from dragoman.model import Origin
from dragoman.providers import Price, Prices

PRICES = Prices({"acme:*": Price("0.50", "2.00")})  # US dollars per million tokens


async def sample(storage: Storage) -> None:
    """Add a sample: three models with one answer each."""
    for user, provider, model in (
        ("ana", "anthropic", "claude-haiku-4-5"),
        ("ana", "acme", "large-1"),
        ("ben", "nobody", "unknown-1"),
    ):
        origin = Origin(dialect="openai-chat", provider=provider, model=model)
        async with ChatHistory(SessionIdentity(chat=model, user=user), storage) as history:
            await history.add("How old is the bridge?")
            await history.add(
                Message.assistant("460 years.", usage=Usage(input=1200, output=300), origin=origin)
            )


async def main() -> None:
    """Add up the costs, and print the highest first."""
    parser = argparse.ArgumentParser(description="What conversations have cost.")
    parser.add_argument("--store", help="a store's URL (default: a sample)")
    parser.add_argument("--since", type=datetime.fromisoformat, help="a date, in UTC")
    options = parser.parse_args()

    which = Filter(since=options.since.replace(tzinfo=UTC).timestamp() if options.since else None)
    costs: defaultdict[str, Decimal] = defaultdict(Decimal)
    unknown: Counter[str] = Counter()
    async with open_storage(options.store or "memory:") as storage:
        if options.store is None:
            await sample(storage)
        for session in await storage.sessions(which):
            async with ChatHistory(session.identity, storage) as history:
                async for message in history:
                    if message.origin is None or message.usage is None:
                        continue
                    model = f"{message.origin.provider}:{message.origin.model}"
                    cost = PRICES.cost_of_message(message)
                    if cost is None:
                        unknown[model] += message.usage.total
                        continue
                    costs[model] += cost
                    costs[f"user {session.identity.user or '-'}"] += cost

    for name, cost in sorted(costs.items(), key=lambda item: item[1], reverse=True):
        print(f"{cost:12.6f} USD  {name}")
    for name, tokens in unknown.items():
        print(f"{'unknown':>12}      {name} ({tokens} tokens)")


if __name__ == "__main__":
    asyncio.run(main())
