"""`dragoman show`: conversations on the screen."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Audio,
    File,
    Image,
    Message,
    Messages,
    Opaque,
    Refusal,
    Request,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Video,
)
from dragoman.cli.commands import dragoman as command
from dragoman.cli.wrapping import folded
from dragoman.model import ServerTool
from dragoman.model.invisible import invisible
from dragoman.model.messages import make_message
from dragoman.model.parts import Citation
from dragoman.model.roles import Role
from dragoman.model.tools import make_call
from tests.cli.samples import ANSWERS, HISTORIES, REQUESTS, SECRET, chat, jsonl

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 3000).decode()


def show(*arguments: str, stdin: bytes, color: bool = False, **environment: str) -> Result:
    """Run the command on standard input."""
    words = ["show", "-", *arguments]
    return CliRunner().invoke(command, words, input=stdin, color=color, env=environment)


def shown(*messages: Message, **options: Any) -> list[str]:
    """The output lines of a history, without its header."""
    done = show(stdin=Messages(*messages).to_json(), **options)
    assert done.exit_code == 0
    return done.stdout.splitlines()[1:]


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_every_dialect_is_shown(name: str) -> None:
    """Requests, responses and histories can be shown."""
    done = show(stdin=jsonl(REQUESTS[name], ANSWERS[name], HISTORIES[name]))
    assert done.exit_code == 0
    heads = [line for line in done.stdout.splitlines() if f" · {name}" in line]
    assert [head.split()[0] for head in heads] == ["request", "response", "history"]
    assert "  In Mostar." in done.stdout.splitlines()


def test_a_conversation_is_readable() -> None:
    """It shows roles, texts, and tool calls with their arguments."""
    assert shown(
        Message.system("Be brief."),
        Message.user("Where?\nNow.", name="ann"),
        Message.assistant("Let me look.", tool_calls=[ToolCall.create("1", "find", {"a": [1]})]),
        Message.tool(ToolResult.success("1", "Mostar"), ToolResult.error("2", "no")),
        Message.assistant("In Mostar."),
    ) == [
        "system",
        "  Be brief.",
        "user (ann)",
        "  Where?",
        "  Now.",
        "assistant",
        "  Let me look.",
        "  calls find",
        '    {"a":[1]}',
        "tool",
        "  result of find",
        "    Mostar",
        "  error",
        "    no",
        "assistant",
        "  In Mostar.",
    ]


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (Image(data=DATA, mime="image/png", name="a.png"), ["[image, image/png, a.png, 3.0 kB]"]),
        (Image.from_url("https://example.com/a"), ["[image, https://example.com/a]"]),
        (Video.from_file_id("file-1"), ["[video, uploaded]"]),
        (File(url="DATA:text/plain;base64," + DATA), ["[file, 4.0 kB]"]),
        (Audio(data=DATA, transcript="Hi"), ["[audio, 3.0 kB]", "  Hi"]),
        (Thinking("Hm."), ["thinking: Hm."]),
        (Thinking(data=DATA, form="redacted"), ["[thinking, sealed, 4.0 kB]"]),
        (Thinking(signature=DATA), ["[thinking, not shown]"]),
        (Refusal("No."), ["refused: No."]),
        (Text("Yes.", (Citation(kind="url", url="https://x.example"),)),
         ["Yes.", "  cites https://x.example"]),
        (make_call("1", "f", raw="not json"), ["calls f", "  not json"]),
        (ToolCall("1", "f", raw=""), ["calls f"]),
        (ToolResult("1", (Text("a"), Image(data=DATA))), ["result", "  a", "  [image, 3.0 kB]"]),
        (ToolResult("1", data={"a": 1}), ["result", '  {"a":1}']),
        (ServerToolCall("search", input={"q": "x"}), ["provider runs search", '  {"q":"x"}']),
        (ServerToolResult("search", content=[DATA]), ["result of search", '  ["[4.0 kB]"]']),
        (ServerToolResult("search", is_error=True), ["error of search"]),
        (Opaque("gemini", {"odd": 1}), ["[part known only to gemini]", '  {"odd":1}']),
    ],
)  # fmt: skip
def test_every_part_has_its_form(part: Any, lines: list[str]) -> None:
    """Media are shown by kind and size, never by their data."""
    found = shown(make_message(Role.ASSISTANT, (part,)))
    assert found == ["assistant", *(f"  {line}" for line in lines)]


def test_a_request_shows_its_settings_and_tools() -> None:
    """In a short form."""
    request = Request(
        model="m",
        system=(Text("Be brief."),),
        messages=(Message.user("Hi"),),
        tools=(
            ToolDefinition("find", "Finds\nthings", {"type": "object"}),
            ServerTool("search", "anthropic"),
        ),
    )
    request = request.replace(sampling=request.sampling.replace(temperature=0.5, max_tokens=9))
    assert show(stdin=request.to_json()).stdout.splitlines() == [
        "request · canonical · m · 1 message",
        "  max_tokens 9, temperature 0.5",
        "  tool find: Finds",
        "  tool search, run by the provider",
        "system",
        "  Be brief.",
        "user",
        "  Hi",
    ]


def test_a_response_shows_its_usage_and_finish() -> None:
    """The finish reason and the tokens are the last lines."""
    lines = show(stdin=jsonl(ANSWERS["anthropic"])).stdout.splitlines()
    assert lines[-2:] == ["  ended: stop", "tokens: 9 in, 3 out"]


hostile = st.text(st.characters(codec=None), max_size=30) | st.text(
    "\x1b\x9b\x07\r\n\t[]2Jm\u202e\u061c\u200d\ufe0f😀🏴\U000e0041\U000e007f"
)


@given(hostile)
def test_no_control_characters_reach_the_terminal(text: str) -> None:
    """Escape sequences, control and bidirectional characters are made visible everywhere."""
    part = {"type": "text", "text": text}
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": text, "arguments": json.dumps({text: text})},
    }
    tool = {"type": "function", "function": {"name": text, "description": text}}
    picture = {"type": "image_url", "image_url": {"url": "https://x.example/" + text}}
    body = {
        "model": text,
        "messages": [
            {"role": "user", "name": text, "content": [part, picture]},
            {"role": "assistant", "content": text, "refusal": text, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": text},
        ],
        "tools": [tool],
    }
    done = show("--from", "openai-chat", stdin=jsonl(body))
    assert done.exit_code == 0
    assert not invisible().search(done.stdout)


def test_colours_are_for_terminals() -> None:
    """Colours are off in a pipe and with NO_COLOR."""
    text = jsonl(chat())
    assert "\x1b" not in show(stdin=text).stdout
    assert "\x1b[" in show(stdin=text, color=True).stdout
    assert "\x1b" not in show(stdin=text, color=True, NO_COLOR="1").stdout


def test_long_texts_are_wrapped() -> None:
    """Nothing is left out, except with --short."""
    text = "word " * 1000
    lines = show(stdin=jsonl(chat(text))).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.count("word") for line in lines) == 1000
    short = show("--short", stdin=jsonl(chat(text))).stdout
    assert short.count("word") < 70
    assert "… (4700 more characters)" in short.replace("\n  ", " ")


@given(st.text("ab \u00e9", max_size=60), st.integers(1, 12))
def test_wrapping_keeps_every_word(text: str, width: int) -> None:
    """No row is too long."""
    rows = list(folded(text, width))
    assert all(len(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_json_is_canonical() -> None:
    """Each document becomes one canonical document."""
    done = show("--json", stdin=jsonl(chat(), ANSWERS["gemini"], HISTORIES["gemini"]))
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds == ["Request", "Response", "Messages"]


def test_broken_documents_are_reported_and_the_rest_is_shown() -> None:
    """With their location, and without content."""
    done = show(stdin=jsonl(chat("one")) + SECRET.encode() + b"\n" + jsonl(chat("two")))
    assert done.exit_code == 3
    assert "dragoman: -:2: " in done.stderr
    assert SECRET not in done.stderr
    assert "  one" in done.stdout
    assert "  two" in done.stdout
