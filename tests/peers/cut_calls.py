"""Responses that end within a call or a thought, as proxies and token limits cut them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.model.tools import ToolCall
from tests.peers.claims import is_finished, is_unfinished, reports, shows
from tests.peers.rows import Answer, Frame, Outcome, Row, Stream

_HALF = '{"path": "/a", "content": "hello wor'
_WHOLE = '{"path": "/a", "content": "hello world"}'
_OBJECTS = ("anthropic", "gemini", "ollama")
_TEXTS = ("openai-chat", "openai-responses")


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


def _called(arguments: str, kind: str = "function") -> tuple[Frame, ...]:
    """Chunks of a call with these arguments."""
    field = "arguments" if kind == "function" else "input"
    head = {"index": 0, "id": "call_1", "type": kind, kind: {"name": "write", field: ""}}
    more = {"index": 0, kind: {field: arguments}}
    begun = _delta({"role": "assistant", "content": None, "tool_calls": [head]})
    return (begun, _delta({"tool_calls": [more]})) if arguments else (begun,)


def _answer(arguments: str, finish: str | None, **message: Any) -> Answer:
    call = {"id": "call_1", "type": "function",
            "function": {"name": "write", "arguments": arguments}}  # fmt: skip
    told = {"role": "assistant", "content": None, "tool_calls": [call], **message}
    return Answer("openai-chat", {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": told, "finish_reason": finish}],
    })  # fmt: skip


_CLAUDE: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0,
     "content_block": {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}},
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "input_json_delta", "partial_json": _HALF}},
)  # fmt: skip


def _claude(reason: str | None) -> tuple[dict[str, Any], ...]:
    """A stream of Claude's that ends with this reason within a call."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    told = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}
    return (*_CLAUDE, {"type": "content_block_stop", "index": 0}, told, {"type": "message_stop"})


def nothing_runs(outcome: Outcome) -> None:
    """No client gets a call with valid arguments, streamed or whole."""
    for each in (outcome, outcome.whole):
        seen = None if each is None else each.seen
        for call in seen.message.tool_calls if seen is not None and seen.choices else ():
            assert call.object_arguments() is None or call.raw == ""


def nothing_else_is_sent(outcome: Outcome) -> None:
    """What a client gets of the arguments is a beginning of what the model wrote."""
    assert outcome.seen is not None
    for call in outcome.seen.message.tool_calls if outcome.seen.choices else ():
        assert (_HALF if call.raw != "" else "").startswith(call.raw_arguments)


def calls(outcome: Outcome) -> None:
    """The client gets the whole call."""
    for each in (outcome, outcome.whole):
        if each is not None:
            assert each.seen is not None
            [call] = each.seen.message.tool_calls
            assert call.arguments == json.loads(_WHOLE)


def _text_is_cut(outcome: Outcome) -> None:
    """A free text that was cut off does not arrive as a whole object."""
    assert outcome.seen is not None
    parts = outcome.seen.message.parts if outcome.seen.choices else ()
    for call in (part for part in parts if isinstance(part, ToolCall)):
        assert call.kind == "custom" or call.object_arguments() is None


ROWS = (
    *(
        Row(
            f"Arguments that were cut off never become an object, after {end}",
            "a client wrote half a file: Chat streams behind Claude Code",
            Stream("openai-chat", (*_called(_HALF), *frames)),
            (nothing_runs, nothing_else_is_sent, is_unfinished),
        )
        for end, frames in {
            "`length`": (_delta({}, "length"), "[DONE]"),
            "`[DONE]` alone": ("[DONE]",),
            "nothing": (),
            "an empty reason": (_delta({}, ""), "[DONE]"),
        }.items()
    ),
    Row(
        "A host that says `tool_calls` after half a call does not make it runnable",
        "hosts that set `tool_calls` whenever there is a call",
        Stream("openai-chat", (*_called(_HALF), _delta({}, "tool_calls"), "[DONE]")),
        (nothing_runs, nothing_else_is_sent),
    ),
    Row(
        "Where arguments are objects, a call of such a host is left out, and reported",
        "the same, for whole responses",
        _answer(_HALF, "tool_calls"),
        (nothing_runs, reports("truncated"), is_unfinished),
        _OBJECTS,
    ),
    Row(
        "A whole response that was cut off has no runnable call",
        "the same, for whole responses",
        _answer(_HALF, "length"),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "A whole response without a reason that ends within a call is an error",
        "the same, for whole responses",
        _answer(_HALF, None),
        (is_unfinished,),
    ),
    Row(
        "A whole response without a reason that ends within a thought is an error",
        "the same, for whole responses",
        _answer("", None, tool_calls=None, reasoning_content="Let me s"),
        (is_unfinished,),
    ),
    Row(
        "A call that was cut off before its arguments is not called without any",
        "rig's recordings of Mistral: `arguments` is empty, the reason `length`",
        Stream("openai-chat", (*_called(""), _delta({}, "length"), "[DONE]")),
        (nothing_runs, is_unfinished, reports("truncated")),
        _OBJECTS,
    ),
    Row(
        "`[DONE]` after the name of a call does not make it a call without arguments",
        "the same, from a proxy that lost its connection",
        Stream("openai-chat", (*_called(""), "[DONE]")),
        (is_unfinished,),
    ),
    Row(
        "A patch that was cut off is not sent as a whole argument",
        "Codex's `apply_patch` behind fronts without free-text tools",
        Stream(
            "openai-chat",
            (*_called("*** Begin Patch\n*** Add", "custom"), _delta({}, "length"), "[DONE]"),
        ),
        (_text_is_cut, is_unfinished),
    ),
    Row(
        "A thought without an end is no answer, also when `[DONE]` follows",
        "proxies that close a stream with `[DONE]` when their upstream breaks off",
        Stream("openai-chat", (_delta({"reasoning_content": "Let me s"}), "[DONE]")),
        (is_unfinished,),
    ),
    Row(
        "`message_stop` without a reason within a call is no end",
        "the same question for the next dialect",
        Stream("anthropic", (*_CLAUDE, {"type": "message_stop"})),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "Claude's own cut-off call stays cut off for other clients",
        "the same question for the next dialect",
        Stream("anthropic", _claude("max_tokens")),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "A finished text with `[DONE]` and no reason is a complete answer",
        "hosts that never send a finish reason",
        Stream("openai-chat", (_delta({"role": "assistant", "content": "Warm."}), "[DONE]")),
        (shows("Warm."), is_finished),
    ),
    Row(
        "A finished call with `[DONE]` and no reason is a complete answer",
        "hosts that never send a finish reason",
        Stream("openai-chat", (*_called(_WHOLE), "[DONE]")),
        (calls, is_finished),
    ),
    Row(
        "A complete call before the limit stays a call",
        "the control",
        Stream("openai-chat", (*_called(_WHOLE), _delta({}, "length"), "[DONE]")),
        (calls,),
    ),
)
