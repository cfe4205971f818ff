"""Responses that lack fields which the API itself always sends: what a user should see is seen."""

from __future__ import annotations

from typing import Any

from dragoman.model.media import Image
from dragoman.model.tools import ToolCall
from tests.peers.claims import has, is_valid, shows
from tests.peers.rows import Answer, Outcome, Request, Row, Stream

_PNG = "iVBORw0KGgo="
_SAID: dict[str, Any] = {
    "type": "message", "id": "msg_1", "status": "completed",
    "content": [{"type": "output_text", "text": "Warm.", "annotations": []}],
}  # fmt: skip
_CALLED: dict[str, Any] = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
    "status": "completed",
}  # fmt: skip


def _response(*output: dict[str, Any]) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5",
            "status": "completed", "output": list(output)}  # fmt: skip


def _stream(item: dict[str, Any], *between: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The stream of a response with one item."""
    begun = {key: [] if key == "content" else value for key, value in item.items()}
    return (
        {"type": "response.created", "response": _response() | {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *between,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": _response(item)},
    )


def _untyped(
    item: dict[str, Any], *between: dict[str, Any], where: str
) -> tuple[dict[str, Any], ...]:
    """The stream, without the type of the item in one of its events."""
    place = {"start": 1, "end": -2, "last event": -1}[where]
    events = [*_stream(item, *between)]
    bare = {key: value for key, value in item.items() if key != "type"}
    if where == "last event":
        events[place] = {**events[place], "response": _response(bare)}
    else:
        given = events[place]["item"]
        events[place] = {**events[place], "item": {k: v for k, v in given.items() if k != "type"}}
    return tuple(events)


_DELTA: dict[str, Any] = {
    "type": "response.output_text.delta", "output_index": 0, "content_index": 0,
    "item_id": "msg_1", "delta": "Warm.",
}  # fmt: skip


def calls_weather(outcome: Outcome) -> None:
    """The client sees the call, streamed and whole."""
    for each in (outcome, outcome.whole):
        if each is not None:
            assert each.seen is not None
            calls = [part for part in each.seen.message.parts if isinstance(part, ToolCall)]
            assert [call.name for call in calls] == ["weather"]


def says_it_once(outcome: Outcome) -> None:
    """The client sees the text, once, streamed and whole."""
    for each in (outcome, outcome.whole):
        assert each is not None
        assert each.seen is not None
        assert each.seen.text == "Warm."


def shows_a_picture(outcome: Outcome) -> None:
    """The picture is read; a front's client sees it, or a loss says that it can't."""
    assert outcome.read is not None
    parts = outcome.read.message.parts  # type: ignore[union-attr]  # a response
    assert any(isinstance(part, Image) and part.data == _PNG for part in parts)
    assert outcome.seen is not None
    is_seen = any(isinstance(part, Image) for part in outcome.seen.message.parts)
    assert is_seen or any("media" in loss.reason for loss in outcome.losses) or outcome.losses


def says_what_is_missing(outcome: Outcome) -> None:
    """A loss says that the client does not see a part."""
    if outcome.target != "openai-responses":
        assert any("parts[0]" in loss.path for loss in outcome.losses)


ROWS = (
    Row(
        "A message without a role is the assistant's",
        "Responses proxies that leave out `role`",
        Answer("openai-responses", _response(_SAID)),
        (shows("Warm."),),
    ),
    Row(
        "A streamed message without a role is the assistant's",
        "Responses proxies that leave out `role`",
        Stream("openai-responses", _stream(_SAID, _DELTA)),
        (shows("Warm."),),
    ),
    Row(
        "A part without a type is a text",
        "the same, for the next field",
        Answer("openai-responses", _response(_SAID | {"content": [{"text": "Warm."}]})),
        (shows("Warm."),),
    ),
    Row(
        "A call without arguments is a call",
        "the same, for the next item",
        Answer("openai-responses", _response(_CALLED)),
        (calls_weather,),
    ),
    Row(
        "A streamed call without arguments is a call",
        "the same, for the next item",
        Stream("openai-responses", _stream(_CALLED)),
        (calls_weather,),
    ),
    Row(
        "A call without a type is a call",
        "the same, for the next field",
        Answer(
            "openai-responses",
            _response({"call_id": "call_1", "name": "weather", "arguments": "{}"}),
        ),
        (calls_weather,),
    ),
    *(
        Row(
            f"A streamed {item['type']} without a type at its {where} is not shown or run twice",
            "the same, for the next field",
            Stream("openai-responses", _untyped(item, *events, where=where)),
            (claim,),
        )
        for where in ("start", "end", "last event")
        for item, events, claim in (
            (_CALLED | {"arguments": "{}"}, (), calls_weather),
            (_SAID, (_DELTA,), says_it_once),
        )
    ),
    Row(
        "A picture without an id is a picture",
        "xAI's and Azure's image calls",
        Answer(
            "openai-responses",
            _response({"type": "image_generation_call", "result": _PNG, "output_format": "png"}),
        ),
        (shows_a_picture,),
    ),
    Row(
        "A call without a name can't be shown, and a loss says so",
        "the same question for what has no default",
        Answer("openai-responses", _response({**_CALLED, "name": None, "arguments": "{}"})),
        (says_what_is_missing,),
    ),
    Row(
        "Added tools without a role are tools",
        "Codex's `additional_tools` through proxies",
        Request(
            "openai-responses",
            {
                "model": "gpt-5",
                "input": [
                    {"type": "additional_tools", "tools": [
                        {"type": "function", "name": "weather", "parameters": {"type": "object"}},
                    ]},
                    {"role": "user", "content": "Hi"},
                ],
            },
        ),
        (has('"weather"'), is_valid),
        ("anthropic", "gemini", "ollama", "openai-chat"),
    ),
    Row(
        "Claude's blocks without types are read by their fields",
        "the same question for the next dialect",
        Answer(
            "anthropic",
            {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
                "stop_reason": "tool_use", "stop_sequence": None,
                "content": [
                    {"text": "Warm."}, {"type": "tool_use", "id": "t_1", "name": "weather"},
                ],
                "usage": {"input_tokens": 1, "output_tokens": 2},
            },
        ),
        (shows("Warm."), calls_weather),
    ),
    Row(
        "A Chat part without a type is a text",
        "the same question for the next dialect",
        Answer(
            "openai-chat",
            {
                "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {
                    "role": "assistant", "content": [{"text": "Warm."}]}}],
            },
        ),
        (shows("Warm."),),
    ),
)  # fmt: skip
