"""Responses that end within a call or a thought, as proxies and token limits cut them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.model.tools import ToolCall
from tests.peers.claims import has, is_finished, is_unfinished, reports, shows
from tests.peers.rows import Answer, Outcome, Row, Stream

_HALF = '{"path": "/a", "content": "hello wor'
_WHOLE = '{"path": "/a", "content": "hello world"}'
_OBJECTS = ("anthropic", "gemini", "ollama")
_TEXTS = ("openai-chat", "openai-responses")


def delta(more: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk of Chat's."""
    choice = {"index": 0, "delta": more, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


def called(arguments: str, kind: str = "function") -> tuple[dict[str, Any], ...]:
    """Chunks of a call with these arguments."""
    field = "arguments" if kind == "function" else "input"
    head = {"index": 0, "id": "call_1", "type": kind, kind: {"name": "write", field: ""}}
    more = {"index": 0, kind: {field: arguments}}
    begun = delta({"role": "assistant", "content": None, "tool_calls": [head]})
    return (begun, delta({"tool_calls": [more]})) if arguments else (begun,)


def _answer(arguments: str, finish: str | None, **message: Any) -> Answer:
    call = {"id": "call_1", "type": "function",
            "function": {"name": "write", "arguments": arguments}}  # fmt: skip
    told = {"role": "assistant", "content": None, "tool_calls": [call], **message}
    return Answer("openai-chat", {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": told, "finish_reason": finish}],
    })  # fmt: skip


def claude(arguments: str) -> tuple[dict[str, Any], ...]:
    """The beginning of a stream of Claude's: a call with these arguments."""
    head = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
    more = {"type": "input_json_delta", "partial_json": arguments}
    return (
        {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": head},
        *([{"type": "content_block_delta", "index": 0, "delta": more}] if arguments else ()),
    )  # fmt: skip


def claudes_end(reason: str | None) -> tuple[dict[str, Any], ...]:
    """The end of such a stream, with this reason."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    told = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}
    return ({"type": "content_block_stop", "index": 0}, told, {"type": "message_stop"})


def responses(
    arguments: str, reason: str | None, kind: str = "function"
) -> tuple[dict[str, Any], ...]:
    """A Responses stream of a call with these arguments, which ends with this reason, or within."""
    what, field = ("function_call", "arguments") if kind == "function" else (
        "custom_tool_call", "input")  # fmt: skip
    event = f"response.{what}_{field}" if kind == "function" else f"response.{what}_input"
    item = {"type": what, "id": "fc_1", "call_id": "call_1", "name": "write"}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    at = {"item_id": "fc_1", "output_index": 0}
    done = {**item, field: arguments, "status": "incomplete"}
    begun = (
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**item, field: "", "status": "in_progress"}},
        *([{"type": f"{event}.delta", **at, "delta": arguments}] if arguments else ()),
    )  # fmt: skip
    if reason is None:
        return begun
    return (
        *begun,
        {"type": f"{event}.done", **at, field: arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.incomplete", "response": {
            **head, "status": "incomplete", "incomplete_details": {"reason": reason},
            "output": [done]}},
    )  # fmt: skip


def gemini(count: int, finish: str | None) -> tuple[dict[str, Any], ...]:
    """A stream of Gemini's that ends after so many pieces of a call's arguments."""
    pieces: tuple[dict[str, Any], ...] = (
        {"jsonPath": "$.path", "stringValue": "/a"},
        {"jsonPath": "$.content", "stringValue": "hello ", "willContinue": True},
        {"jsonPath": "$.content", "stringValue": "wor"},
    )
    calls: list[dict[str, Any]] = [{"name": "write", "willContinue": True}]
    calls += [{"partialArgs": [piece], "willContinue": True} for piece in pieces[:count]]
    parts = [[{"functionCall": call}] for call in calls]
    ends: list[dict[str, Any]] = [{"finishReason": finish}] if finish is not None else []
    told = [{"content": {"role": "model", "parts": each}} for each in parts] + ends
    return tuple([{"candidates": [each], "modelVersion": "gemini-3-pro"} for each in told])


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


def calls_without_arguments(outcome: Outcome) -> None:
    """The client gets a call without arguments."""
    for each in (outcome, outcome.whole):
        assert each is not None
        assert each.seen is not None
        [call] = each.seen.message.tool_calls
        assert call.arguments == {}


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
            Stream("openai-chat", (*called(_HALF), *frames)),
            (nothing_runs, nothing_else_is_sent, is_unfinished),
        )
        for end, frames in {
            "`length`": (delta({}, "length"), "[DONE]"),
            "`[DONE]` alone": ("[DONE]",),
            "nothing": (),
            "an empty reason": (delta({}, ""), "[DONE]"),
        }.items()
    ),
    Row(
        "A host that says `tool_calls` after half a call does not make it runnable",
        "hosts that set `tool_calls` whenever there is a call",
        Stream("openai-chat", (*called(_HALF), delta({}, "tool_calls"), "[DONE]")),
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
        Stream("openai-chat", (*called(""), delta({}, "length"), "[DONE]")),
        (nothing_runs, is_unfinished, reports("truncated")),
        _OBJECTS,
    ),
    Row(
        "`[DONE]` after the name of a call does not make it a call without arguments",
        "the same, from a proxy that lost its connection",
        Stream("openai-chat", (*called(""), "[DONE]")),
        (is_unfinished,),
    ),
    Row(
        "A patch that was cut off is not sent as a whole argument",
        "Codex's `apply_patch` behind fronts without free-text tools",
        Stream(
            "openai-chat",
            (*called("*** Begin Patch\n*** Add", "custom"), delta({}, "length"), "[DONE]"),
        ),
        (_text_is_cut, is_unfinished),
    ),
    Row(
        "A thought without an end is no answer, also when `[DONE]` follows",
        "proxies that close a stream with `[DONE]` when their upstream breaks off",
        Stream("openai-chat", (delta({"reasoning_content": "Let me s"}), "[DONE]")),
        (is_unfinished,),
    ),
    Row(
        "`message_stop` without a reason within a call is no end",
        "the same question for the next dialect",
        Stream("anthropic", (*claude(_HALF), {"type": "message_stop"})),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "Claude's own cut-off call stays cut off for other clients",
        "the same question for the next dialect",
        Stream("anthropic", (*claude(_HALF), *claudes_end("max_tokens"))),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "Claude's call that was cut off before its arguments is not called without any",
        "mezmo/aura#591 (2026-08-24)",
        Stream("anthropic", (*claude(""), *claudes_end("max_tokens"))),
        (nothing_runs, is_unfinished),
        ("openai-chat", "openai-responses", "gemini", "ollama"),
    ),
    Row(
        "A call that Claude's filter cut off is not complete, also where refusals are",
        "router-for-me/CLIProxyAPI#5439 (2026-09-03), for the next reason",
        Stream("anthropic", (*claude(_HALF), *claudes_end("refusal"))),
        (nothing_runs, is_unfinished),
        ("openai-chat", "openai-responses", "gemini", "ollama"),
    ),
    Row(
        "A text that Claude's filter cut off is no complete answer",
        "router-for-me/CLIProxyAPI#5439 (2026-09-03), for the next reason",
        Answer(
            "anthropic",
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [{"type": "text", "text": "First, take"}],
                "stop_reason": "refusal",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        ),
        (is_unfinished, has("First, take")),
        ("openai-chat", "openai-responses", "gemini"),
    ),
    *(
        Row(
            f"A Responses call without arguments in a response that ended by {reason} is not run",
            "BerriAI/litellm#27144, for the next field",
            Stream("openai-responses", responses("", reason)),
            (nothing_runs, is_unfinished),
            ("anthropic", "openai-chat", "gemini", "ollama"),
        )
        for reason in ("max_output_tokens", "content_filter")
    ),
    Row(
        "A Responses call whose arguments are no object stays as it is if it was cut off",
        "the same, for arguments that nobody can read",
        Stream("openai-responses", responses('["', "max_output_tokens")),
        (nothing_runs, is_unfinished),
    ),
    Row(
        "A call of Gemini's that was malformed halfway is not complete",
        "google-gemini/gemini-cli: MALFORMED_FUNCTION_CALL as a normal end",
        Stream("gemini", gemini(2, "MALFORMED_FUNCTION_CALL")),
        (nothing_runs, is_unfinished),
        ("anthropic", "openai-chat", "openai-responses", "ollama"),
    ),
    Row(
        "A filter that cut off a call leaves nothing to run",
        "the same question for the next reason",
        Stream("openai-chat", (*called(""), delta({}, "content_filter"), "[DONE]")),
        (nothing_runs, is_unfinished, reports("truncated")),
        _OBJECTS,
    ),
    *(
        Row(
            f"`{word}` means `length` in a Chat stream, too",
            "nearai/ironclaw#5665",
            Stream("openai-chat", (*called(""), delta({}, word), "[DONE]")),
            (nothing_runs, is_unfinished, reports("truncated")),
            _OBJECTS,
        )
        for word in ("max_tokens", "max_output_tokens", "MAX_TOKENS")
    ),
    Row(
        "A finished text with `[DONE]` and no reason is a complete answer",
        "hosts that never send a finish reason",
        Stream("openai-chat", (delta({"role": "assistant", "content": "Warm."}), "[DONE]")),
        (shows("Warm."), is_finished),
    ),
    Row(
        "A finished call with `[DONE]` and no reason is a complete answer",
        "hosts that never send a finish reason",
        Stream("openai-chat", (*called(_WHOLE), "[DONE]")),
        (calls, is_finished),
    ),
    Row(
        "A finished call of Claude's without arguments is a complete answer",
        "the control",
        Stream("anthropic", (*claude(""), *claudes_end("tool_use"))),
        (calls_without_arguments, is_finished),
    ),
    Row(
        "A complete call before the limit stays a call",
        "the control",
        Stream("openai-chat", (*called(_WHOLE), delta({}, "length"), "[DONE]")),
        (calls,),
    ),
)
