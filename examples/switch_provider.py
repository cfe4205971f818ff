"""One conversation, several providers: each gets the whole conversation in its own format.

    python examples/switch_provider.py                           # echoes, needs no key
    python examples/switch_provider.py anthropic:claude-sonnet-4-5 google:gemini-2.5-flash

Shows `chat.use`, a tool call that moves between providers, and what a provider would be sent.
"""

from __future__ import annotations

import argparse
import asyncio

from dragoman import Agent, Request, tool
from dragoman.transport import Client


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}, 11 °C"


async def main() -> None:
    """Ask the same agent on each model in turn, then show the conversation on the wire."""
    parser = argparse.ArgumentParser(description="One conversation, several providers.")
    parser.add_argument("models", nargs="*", default=["echo:first", "echo:second"])
    first, *others = parser.parse_args().models

    agent = Agent(first, tools=[weather], system="Be brief.")
    async with agent, agent.chat() as chat:
        # `echo:` calls a tool when a line says so; a real model reads it as a question.
        await chat.send('/tool weather {"city": "Mostar"}')
        for model in others:
            chat.use(model)
            await chat.send("What should I wear there?")
        messages = await chat.messages()

    for message in messages:
        model = message.origin.model if message.origin else "-"
        calls = [call.name for call in message.tool_calls]
        print(f"{message.role.value:10} {model or '-':20} {message.text or calls}")

    request = Request(messages=tuple(messages), tools=(weather.definition,))
    for target in ("anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash"):
        encoded = Client(target).encode(request)  # sends nothing, needs no key
        print(f"{target}: {len(encoded.to_bytes())} bytes, {len(encoded.losses)} losses")


if __name__ == "__main__":
    asyncio.run(main())
