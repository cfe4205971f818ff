"""An agent with two tools, one of which asks before it runs.

    python examples/approval.py                                  # uses a script, needs no key
    python examples/approval.py --model openai:gpt-5             # needs OPENAI_API_KEY
    python examples/approval.py --yes                            # approves everything

Shows tools, `requires_approval`, and how to decide while the run waits. To decide later, or in
another process, omit `approve=`: the pending calls are then in `result.deferred`.
"""

from __future__ import annotations

import argparse
import asyncio

from dragoman import Agent, Message, Model, RunContext, ToolCall, tool
from dragoman.testing import ScriptedModel

STOCK = {"umbrella": 3, "raincoat": 0}


@tool
def stock(item: str) -> int:
    """How many of an item are in stock."""
    return STOCK.get(item, 0)


@tool(requires_approval=True)
def order(item: str, count: int) -> str:
    """Order more of an item from the supplier.

    Args:
        item: The name of the item.
        count: How many.
    """
    STOCK[item] = STOCK.get(item, 0) + count
    return f"{count} x {item} ordered"


def script() -> Model:
    """A script in place of a model, used without `--model`."""
    look = ToolCall.create("call_1", "stock", {"item": "raincoat"})
    buy = ToolCall.create("call_2", "order", {"item": "raincoat", "count": 20})
    return ScriptedModel(
        [
            Message.assistant(tool_calls=[look]),
            Message.assistant("There are none left.", tool_calls=[buy]),
            lambda request: f"Done: {request.messages[-1].tool_results[0].text}",
        ]
    )


async def ask(call: ToolCall, run: RunContext) -> bool | str:  # noqa: ARG001 - the agent gives both
    """Ask the user at the terminal; a string rejects the call with that reason."""
    question = f"Run {call.name}({dict(call.arguments)})? [y/N] "
    answer = await asyncio.to_thread(input, question)
    return True if answer.strip().lower() == "y" else "The user said no."


async def main() -> None:
    """Ask the agent to restock."""
    parser = argparse.ArgumentParser(description="An agent that asks before it orders.")
    parser.add_argument("--model", help="provider:model (default: a script)")
    parser.add_argument("--yes", action="store_true", help="approve everything")
    options = parser.parse_args()

    approve = (lambda _call, _run: True) if options.yes else ask
    async with Agent(options.model or script(), tools=[stock, order], approve=approve) as agent:
        result = await agent.send("Are there raincoats? If not, order 20.")
    print(result.output)
    print(f"in stock: {STOCK}")


if __name__ == "__main__":
    asyncio.run(main())
