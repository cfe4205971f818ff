"""Seed 004's limits on time and memory, measured in a process without coverage or other tests.

The least of many rounds counts: a busy machine makes most rounds slow, never all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FrameType

import pytest

import dragoman

MEASURE = """
import sys; sys.path[:0] = {path!r}
from time import monotonic
from timeit import repeat
from dragoman import Message, Role, Text, ToolCall, ToolResult
text = Text("Hello, world!")
call = ToolCall.create("call_1", "write_file", {{"path": "a.py", "content": "pass"}})
message = Message.assistant("This is a typical message with some content.", tool_calls=[call])
raw = message.to_json()
same = Message.from_json(raw)
until, best = monotonic() + 20, 1.0
while best >= {limit} and monotonic() < until:
    best = min(best, min(repeat(lambda: {code}, number=200, repeat=100)) / 200)
print(best)
"""

MEMORY = """
import sys; sys.path[:0] = {path!r}
import tracemalloc
from dragoman import Message
text = "Hello, world!"
Message.user(text).id
kept = []
tracemalloc.start()
for _ in range(1000):
    message = Message.user(text)
    message.id
    kept.append(message)
print(tracemalloc.get_traced_memory()[0] / 1000)
"""


def printed(program: str, **inserted: object) -> float:
    """The number that a program of its own prints."""
    source = program.format(path=sys.path, **inserted)
    command = [sys.executable, "-c", source]
    run = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    return float(run.stdout)


@pytest.mark.parametrize(("code", "seconds"), [
    ('Message.user("Hello, world!")', 20e-6),
    ('Message.system("Hello, world!")', 20e-6),
    ('Message.assistant("Hello, world!")', 20e-6),
    ("Message(Role.ASSISTANT, (text,))", 20e-6),
    ('ToolCall("call_1", "write_file", raw="{}")', 20e-6),
    ('ToolResult("call_1", "ok")', 20e-6),
    ("message.to_json()", 1e-3),
    ("Message.from_json(raw)", 1e-3),
    ("message == same", 1e-3),
], ids=[
    "user", "system", "assistant", "parts", "call", "result",
    "serialize", "deserialize", "equality",
])  # fmt: skip
def test_it_is_quick(code: str, seconds: float) -> None:
    """Construction within microseconds, JSON within a millisecond a message.

    The limits are far off what is measured, so that a busy machine can't decide; `make bench` shows
    the figures beside the seed's limit of one microsecond.
    """
    assert printed(MEASURE, code=code, limit=seconds) < seconds


@pytest.mark.parametrize(("make", "limit"), [
    (lambda: dragoman.ToolCall("c", "f", '{"path": "a"}'), 5),
    (lambda: dragoman.Message.tool("c", "ok"), 6),
    (lambda: dragoman.Message("tool", dragoman.ToolResult("c", "ok")), 11),
    (lambda: dragoman.Message.user("hi"), 2),
], ids=["call", "result", "message", "user"])  # fmt: skip
def test_few_functions_are_entered(make: Callable[[], object], limit: int) -> None:
    """A limit of one microsecond (seed 004) leaves room for a handful of Python's calls."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    make()
    sys.setprofile(note)
    try:
        make()
    finally:
        sys.setprofile(None)
    assert len(entered) - 1 <= limit, entered


def test_a_message_takes_less_than_a_kilobyte() -> None:
    """Besides its content, its id included."""
    assert printed(MEMORY) < 1024


def test_roles_are_made_once() -> None:
    """Parsing and comparing give the members that are there: nothing is allocated."""
    for role in dragoman.Role:
        assert dragoman.Role.parse(role.value.upper()) is role
        assert dragoman.Role(role.value) is role
        assert dragoman.Message.empty(role).role is role


OUTSIDE = """
import sys; sys.path[:0] = {path!r}
from dragoman import *
def everything():
    call = ToolCall.create("c", "f", '{{"a": "import os"}}')
    said = ["__import__('os').system('x')", {{"role": "assistant", "content": "$(ls)"}}]
    messages = Messages.from_any(said).append(Message.assistant(tool_calls=[call]))
    messages = messages.append(Message.user(Image.from_url("https://example.com/cat.png")))
    history = ConversationHistory(messages, policy="lenient")
    store = MessageStore.from_messages(messages)
    call.arguments, repr(messages), hash(messages), messages.to_text(renderer=str)
    assert messages == Messages.from_json(messages.to_json())
    ConversationHistory.from_json(history.to_json()), MessageStore.from_json(store.to_json())
    schema = {{"type": "object", "properties": {{"a": {{"type": "string"}}}}}}
    ToolDefinition.create("f", "It works.", schema).check_arguments(call.arguments)
everything()
seen = []
sys.addaudithook(lambda event, _: seen.append(event))
everything()
print(len([event for event in seen if event != "builtins.id"]))
"""


def test_values_touch_nothing_outside() -> None:
    """No file, no network, no process, no code: the interpreter's audit hook sees nothing."""
    assert printed(OUTSIDE) == 0
