"""A run that survives its process: kill it anywhere, start it again, and no tool runs twice.

    python examples/durable_run.py --crash    # crashes in the second tool
    python examples/durable_run.py            # resumes, and ends
    python examples/durable_run.py --model anthropic:claude-sonnet-4-5

Shows what engines such as Temporal call durable execution, with a `ChatHistory` as the journal:
each message is stored before the agent acts on it, and so is the start of each tool. Delete
trip.db to start over.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from dragoman import (
    Agent,
    ChatHistory,
    Message,
    Model,
    Request,
    Role,
    RunContext,
    SessionIdentity,
    ToolCall,
    ToolExecutor,
    tool,
)
from dragoman.testing import ScriptedModel


@tool
def book_flight(to: str, run: RunContext[bool]) -> str:
    """Book a flight."""
    key = run.call.id if run.call else ""  # the airline uses it to book only once
    print(f"booking a flight to {to}, idempotency key {key}")
    return "flight booked"


@tool
def book_hotel(city: str, run: RunContext[bool]) -> str:
    """Book a hotel."""
    print(f"booking a hotel in {city}", flush=True)
    if run.deps:
        os._exit(1)  # no cleanup, no `finally`, as with `kill -9` or a power cut
    return "hotel booked"


def script() -> Model:
    """A script in place of a model, used without `--model`."""
    calls = [
        ToolCall.create("call_1", "book_flight", {"to": "Mostar"}),
        ToolCall.create("call_2", "book_hotel", {"city": "Mostar"}),
    ]

    def answer(request: Request) -> Message:
        results = request.messages[-1].tool_results
        if not results:
            return Message.assistant(tool_calls=calls)
        return Message.assistant("\n".join(f"{r.tool_name}: {r.text}" for r in results))

    return ScriptedModel([answer], repeat=True)


async def is_unfinished(history: ChatHistory) -> bool:
    """Whether a run was interrupted: a run ends with an answer without tool calls."""
    last = await history.last()
    return last is not None and (last.role is not Role.ASSISTANT or bool(last.tool_calls))


async def main() -> None:
    """Start the run, or resume it."""
    parser = argparse.ArgumentParser(description="A run that survives its process.")
    parser.add_argument("--model", help="provider:model (default: a script)")
    parser.add_argument("--store", default="sqlite:///trip.db", help="(default: %(default)s)")
    parser.add_argument("--crash", action="store_true", help="crash while the hotel is booked")
    options = parser.parse_args()

    one_by_one = ToolExecutor(limit=1)
    agent = Agent(options.model or script(), tools=[book_flight, book_hotel], executor=one_by_one)
    session = SessionIdentity(agent="traveller", chat="trip-1")  # the id of the durable run
    async with agent, ChatHistory(session, storage=options.store) as history:
        if await is_unfinished(history):
            print("resuming")
            result = await agent.send(history=history, deps=options.crash)
        else:
            result = await agent.send("To Mostar!", history=history, deps=options.crash)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
