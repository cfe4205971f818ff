"""State that arrives after the text, and Claude Code, which takes the last block for the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import ServerError
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front, front_form

ANTHROPIC = dialect("anthropic")
CLAUDE_CODE = front_form(ANTHROPIC).agents[b"claude-cli/"]
_SAID, _SIGNED, _LONE = Text("Hello."), Text("Hello.", signature="c2ln"), Text("", signature="c2ln")
TRAILING = {
    "a signed text": (_SIGNED,),
    "a lone signature": (_SAID, _LONE),
    "two signatures": (_SIGNED, _LONE),
    "after thinking": (Thinking("Hm.", form="summary"), _SAID, _LONE),
    "the same text twice": (_SAID, _LONE, ToolCall.create("c1", "f", {}), _SAID, _LONE),
    "a signature before the text": (_LONE, _SAID),
    "a text after the signature": (_SIGNED, Text("Bye.")),
    "a call at the end": (_SAID, _LONE, ToolCall.create("c1", "f", {})),
    "an unknown part at the end": (_SAID, Opaque("gemini", {"surprise": 1})),
}


def _answer(*parts: AnyPart) -> Response:
    home = Origin(dialect="gemini")
    message = Message.assistant(*[part.replace(origin=home) for part in parts])
    return Response(choices=(Choice(0, message.replace(origin=home)),))


def _claude_code_blocks(response: Response) -> tuple[list[Any], list[Any]]:
    """The blocks of a stream in the order of their starts, and of their stops."""
    encoder = Front("anthropic", agent=CLAUDE_CODE).stream()
    told = [encoder.feed(event) for event in events_of(response)]
    started: list[Any] = []
    stopped: list[Any] = []
    for line in b"".join([*told, encoder.close()]).splitlines():
        event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
        if event.get("type") == "content_block_start":
            assert event["index"] == len(started)
            started.append(event["content_block"])
        elif event.get("type") == "content_block_delta":
            for key, value in event["delta"].items():
                block = started[event["index"]]
                if key == "partial_json":
                    block["input"] = json.loads(value)
                elif key != "type":
                    block[key] = block.get(key, "") + value
        elif event.get("type") == "content_block_stop":
            stopped.append(started[event["index"]])
    assert len(started) == len(stopped)
    return started, stopped


@pytest.mark.parametrize("parts", TRAILING.values(), ids=TRAILING)
def test_claude_code_gets_the_text_last(parts: tuple[AnyPart, ...]) -> None:
    """It prints the block that stops last, and sends blocks back in the order of their stops."""
    response = _answer(*parts)
    started, stopped = _claude_code_blocks(response)
    assert stopped[-1]["type"] == ("tool_use" if type(parts[-1]) is ToolCall else "text")
    whole = ANTHROPIC.encode_response(response).body["content"]
    last = Front("anthropic", agent=CLAUDE_CODE).response(response).body["content"]
    assert last[-1]["type"] == stopped[-1]["type"]
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": "?"}]
    for content in (started, stopped, whole, last):
        body = {"messages": [{"role": "assistant", "content": content},
                             {"role": "user", "content": results}]}  # fmt: skip
        back = ANTHROPIC.decode_request(body).messages[0].parts
        assert [_told(part) for part in back] == [_told(part) for part in parts]


def _told(part: AnyPart) -> tuple[Any, ...]:
    signature = None if isinstance(part, Thinking) else part.signature
    return type(part), getattr(part, "text", None), signature


def test_a_streamed_error_ends_the_text_first() -> None:
    """A delayed stop is sent before an error."""
    encoder = Front("anthropic", agent=CLAUDE_CODE).stream()
    told = [encoder.feed(event) for event in list(events_of(_answer(_SAID, _LONE)))[:-2]]
    frames = b"".join([*told, encoder.fail(ServerError("it failed"))])
    assert frames.count(b"event: content_block_start") == frames.count(b"event: content_block_stop")
    assert frames.rindex(b"content_block_stop") < frames.rindex(b"event: error")
