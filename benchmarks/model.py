"""The model beside pydantic-ai's and langchain-core's: making, storing and keeping messages."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import msgspec

from benchmarks import conversations
from benchmarks.clock import Job, seconds
from benchmarks.report import Ratio, show
from dragoman import Message, Messages, ToolCall, ToolDefinition, ToolResult

KEPT = 100_000


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Which city."}},
    "required": ["city"],
}
ARGUMENTS = {"city": "Mostar"}


def construction() -> list[Ratio]:
    """Every factory beside the peers' constructors for the same thing."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.messages.tool import tool_call
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.tools import ToolDefinition as TheirDefinition

    mine, their = ToolCall("c1", "weather", ARGUMENTS), ToolCallPart("weather", ARGUMENTS, "c1")
    chained = tool_call(name="weather", args=ARGUMENTS, id="c1")
    jobs: dict[str, tuple[Job, Job, Job | None]] = {
        'Message.user("…")': (
            lambda: Message.user("Hello, world!"),
            lambda: ModelRequest(parts=[UserPromptPart("Hello, world!")]),
            lambda: HumanMessage("Hello, world!"),
        ),
        'Message("user", "…")': (
            lambda: Message("user", "Hello, world!"),
            lambda: ModelRequest(parts=[UserPromptPart("Hello, world!")]),
            lambda: HumanMessage("Hello, world!"),
        ),
        'Message.system("…")': (
            lambda: Message.system("Be brief."),
            lambda: ModelRequest(parts=[SystemPromptPart("Be brief.")]),
            lambda: SystemMessage("Be brief."),
        ),
        'Message.assistant("…")': (
            lambda: Message.assistant("Hello."),
            lambda: ModelResponse(parts=[TextPart("Hello.")]),
            lambda: AIMessage("Hello."),
        ),
        'Message.assistant("…", tool_calls=[call])': (
            lambda: Message.assistant("One moment.", tool_calls=[mine]),
            lambda: ModelResponse(parts=[TextPart("One moment."), their]),
            lambda: AIMessage("One moment.", tool_calls=[chained]),
        ),
        'Message.tool("c1", "…")': (
            lambda: Message.tool("c1", "sunny"),
            lambda: ModelRequest(parts=[ToolReturnPart("weather", "sunny", "c1")]),
            lambda: ToolMessage("sunny", tool_call_id="c1"),
        ),
        "ToolCall.create": (
            lambda: ToolCall.create("c1", "weather", ARGUMENTS),
            lambda: ToolCallPart("weather", ARGUMENTS, "c1"),
            lambda: tool_call(name="weather", args=ARGUMENTS, id="c1"),
        ),
        "ToolResult.success": (
            lambda: ToolResult.success("c1", "sunny"),
            lambda: ToolReturnPart("weather", "sunny", "c1"),
            None,
        ),
        "ToolDefinition.create": (
            lambda: ToolDefinition.create("weather", "The weather.", SCHEMA),
            lambda: TheirDefinition(
                name="weather", parameters_json_schema=SCHEMA, description="The weather."
            ),
            None,
        ),
    }
    return [ratio for name, subjects in jobs.items() for ratio in _made(name, *subjects)]


def _made(name: str, ours: Job, pydantic_ai: Job, langchain: Job | None) -> list[Ratio]:
    """One factory beside its peers; the bar is for the one that most messages go through."""
    jobs = {"dragoman": ours, "pydantic-ai": pydantic_ai}
    times = seconds(jobs | ({"langchain-core": langchain} if langchain else {}))
    mine = times["dragoman"]
    bar = 0.75 if name.startswith("Message.user") else None
    ratios = [
        Ratio(f"against {peer}", mine / taken, at_most=bar)
        for peer, taken in times.items()
        if peer != "dragoman"
    ]
    ratios.append(Ratio("against seed 004's limit of 1 µs", mine / 1e-6))
    show(name, times, ratios)
    return ratios


def storing() -> list[Ratio]:
    """A conversation of 1,000 messages to JSON bytes and back into types."""
    from langchain_core.messages import messages_from_dict, messages_to_dict
    from pydantic_ai.messages import ModelMessagesTypeAdapter as Adapter

    ours, theirs, chain = (
        conversations.ours(),
        conversations.pydantic_ai(),
        conversations.langchain(),
    )
    raw = ours.to_json()
    assert Messages.from_json(raw) == ours
    times = seconds(
        {
            "dragoman": lambda: Messages.from_json(ours.to_json()),
            "msgspec, untyped, the same bytes": lambda: msgspec.json.encode(
                msgspec.json.decode(raw)
            ),
            "pydantic-ai": lambda: Adapter.validate_json(Adapter.dump_json(theirs)),
            "langchain-core": lambda: messages_from_dict(
                json.loads(json.dumps(messages_to_dict(chain)))
            ),
        }
    )
    mine = times["dragoman"]
    untyped = times["msgspec, untyped, the same bytes"]
    ratios = [
        Ratio("against msgspec's untyped decode and encode", mine / untyped, at_most=1.5),
        Ratio("times faster than pydantic-ai", times["pydantic-ai"] / mine, at_least=10),
        Ratio("times faster than langchain-core", times["langchain-core"] / mine, at_least=10),
    ]
    show(f"1,000 messages with 250 tool calls to JSON and back ({len(raw):,} bytes)", times, ratios)
    return ratios


def memory() -> list[Ratio]:
    """Many text messages, kept."""
    texts = [f"message number {n}" for n in range(KEPT)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [Message.user(text) for text in texts]
    bare = (tracemalloc.get_traced_memory()[0] - before) / KEPT
    for message in kept:
        message.settle()
    with_ids = (tracemalloc.get_traced_memory()[0] - before) / KEPT
    tracemalloc.stop()
    ratios = [Ratio("of 1 KB a message, id included", with_ids / 1024, at_most=1)]
    print(f"\nMemory of {KEPT:,} text messages, texts aside")
    print(f"  {'bytes a message':58} {bare:10.0f}")
    print(f"  {'bytes a message, once its id was asked for':58} {with_ids:10.0f}")
    print(ratios[0])
    return ratios


def importing() -> list[Ratio]:
    """`import dragoman` beside `import msgspec`, in fresh interpreters."""
    times = seconds(
        {name: lambda code=code: _fresh(code) for name, code in _IMPORTS.items()},  # type: ignore[misc]  # a default binds it
        rounds=15,
    )
    bare = times.pop("nothing")
    times = {name: value - bare for name, value in times.items()}
    ratios = [
        Ratio(
            "against import msgspec",
            times["import dragoman"] / times["import msgspec"],
            at_most=1.5,
        )
    ]
    show("Imports, the interpreter's own start taken off", times, ratios)
    return ratios


_IMPORTS = {
    "nothing": "pass",
    "import msgspec": "import msgspec",
    "import dragoman": "import dragoman",
    "from dragoman import Message": "from dragoman import Message",
}


def _fresh(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
