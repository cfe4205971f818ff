"""A Slack bot: one stored conversation per thread.

    python examples/slack_bot.py                                 # simulates Slack, needs no key

    pip install slack-bolt aiohttp                               # for a real one, with Socket Mode
    export SLACK_BOT_TOKEN=xoxb-… SLACK_APP_TOKEN=xapp-… ANTHROPIC_API_KEY=…
    python examples/slack_bot.py --model anthropic:claude-sonnet-4-5

Shows a bot that doesn't depend on Slack's library: `Bot.on_message` gets the event and a function
to answer with, so tests need neither Slack nor a model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dragoman import Agent, ChatHistory, DragomanError, Message, Model, SessionIdentity
from dragoman.history import Storage, open_storage

Say = Callable[..., Awaitable[Any]]  # as slack_bolt's: say(text=…, thread_ts=…)


class Bot:
    """Answers messages; each thread is a conversation of its own."""

    def __init__(self, model: str | Model, storage: Storage) -> None:
        self._agent = Agent(model, system="You are a helpful bot. Answer in Slack's mrkdwn.")
        self._storage = storage
        self._locks: dict[str, asyncio.Lock] = {}

    async def on_message(self, event: Mapping[str, Any], say: Say) -> None:
        """Answer in the thread of a message; ignores bots, edits and Slack's retries."""
        if event.get("bot_id") or event.get("subtype"):
            return
        thread = event.get("thread_ts") or event["ts"]
        session = SessionIdentity(agent="slack", chat=thread, group=event["channel"])
        one_at_a_time = self._locks.setdefault(session.digest, asyncio.Lock())
        async with one_at_a_time, ChatHistory(session, self._storage) as history:
            seen = [message.metadata.get("ts") for message in await history.messages()]
            if event["ts"] in seen:
                return
            await history.add(prompt(event))
            try:
                text = (await self._agent.send(history=history)).output
            except DragomanError as error:
                text = f"Sorry, that did not work: {error}"
        await say(text=text, thread_ts=thread)


def prompt(event: Mapping[str, Any]) -> Message:
    """Slack's message as a `Message`; its `ts` distinguishes a retry from a new message."""
    return Message.user(event["text"], name=event["user"], metadata={"ts": event["ts"]})


async def connect(bot: Bot) -> None:
    """Listen to Slack until stopped."""
    from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
    from slack_bolt.async_app import AsyncApp

    app = AsyncApp(token=os.environ["SLACK_BOT_TOKEN"])
    app.event("message")(bot.on_message)
    await AsyncSocketModeHandler(app, os.environ["SLACK_APP_TOKEN"]).start_async()


async def pretend(bot: Bot) -> None:
    """Two messages in a thread, the second delivered twice, as Slack sometimes does."""

    async def say(text: str, thread_ts: str) -> None:
        print(f"[{thread_ts}] {text}")

    for ts, text in (("1.0", "Hello"), ("2.0", "Are you there?"), ("2.0", "Are you there?")):
        event = {"channel": "C1", "user": "U1", "ts": ts, "thread_ts": "1.0", "text": text}
        await bot.on_message(event, say)


async def main() -> None:
    """Connect to Slack if there are tokens, otherwise simulate it."""
    parser = argparse.ArgumentParser(description="A Slack bot.")
    parser.add_argument("--model", default="echo:", help="provider:model (default: %(default)s)")
    parser.add_argument("--store", default="memory:", help="(default: %(default)s)")
    options = parser.parse_args()
    async with open_storage(options.store) as storage:
        bot = Bot(options.model, storage)
        await (connect(bot) if "SLACK_APP_TOKEN" in os.environ else pretend(bot))


if __name__ == "__main__":
    asyncio.run(main())
