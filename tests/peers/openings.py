"""Responses that begin twice, as proxies and retries send them."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import is_finished, is_unfinished, reports_only_ids, shows
from tests.peers.rows import Outcome, Row, Stream

_MESSAGE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
    "content": [], "stop_reason": None, "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
_BEGUN: dict[str, Any] = {"type": "message_start", "message": _MESSAGE}
_SAID: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Warm."}},
    {"type": "content_block_stop", "index": 0},
]
_ENDED: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]  # fmt: skip

_OTHER: dict[str, Any] = {"type": "message_start", "message": _MESSAGE | {"id": "msg_2"}}
_USE: dict[str, Any] = {
    "type": "content_block_start", "index": 0,
    "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
}  # fmt: skip
_USED: list[dict[str, Any]] = [
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "input_json_delta", "partial_json": '{"city": "Basel"}'}},
    {"type": "content_block_stop", "index": 0},
]  # fmt: skip


def _chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    """A chunk of Gemini's."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "g1"}


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk of Chat's."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


_ARGUMENTS = '{"city": "Basel"}'
_ITEM: dict[str, Any] = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
    "arguments": _ARGUMENTS, "status": "completed",
}  # fmt: skip
_ADDED: dict[str, Any] = {
    "type": "response.output_item.added", "output_index": 0,
    "item": _ITEM | {"arguments": "", "status": "in_progress"},
}  # fmt: skip
_DONE: dict[str, Any] = {"type": "response.output_item.done", "output_index": 0, "item": _ITEM}


def _response(*events: dict[str, Any]) -> Stream:
    """A Responses stream with these events of its only item."""
    body: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    return Stream("openai-responses", (
        {"type": "response.created", "response": body | {"status": "in_progress", "output": []}},
        *events,
        {"type": "response.completed",
         "response": body | {"status": "completed", "output": [_ITEM]}},
    ))  # fmt: skip


def _piece(**call: Any) -> dict[str, Any]:
    """A chunk of Gemini's with a piece of a call."""
    return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": call}]}}],
            "modelVersion": "gemini-3-pro", "responseId": "g1"}  # fmt: skip


_HEAD: dict[str, Any] = {"tool_calls": [
    {"index": 0, "id": "call_1", "type": "function",
     "function": {"name": "weather", "arguments": ""}},
]}  # fmt: skip
_MORE: dict[str, Any] = {"tool_calls": [{"index": 0, "function": {"arguments": _ARGUMENTS}}]}


def calls_once(outcome: Outcome) -> None:
    """The client sees one call, streamed and whole."""
    for each in (outcome, outcome.whole):
        assert each is not None
        assert each.seen is not None
        assert [call.arguments for call in each.seen.message.tool_calls] == [{"city": "Basel"}]


ROWS = (
    Row(
        "A `message_start` that is repeated with the same id is ignored",
        "BerriAI/litellm and maximhq/bifrost send it",
        Stream("anthropic", (_BEGUN, _BEGUN, *_SAID, *_ENDED)),
        (shows("Warm."), is_finished, reports_only_ids),
    ),
    Row(
        "A `message_start` that comes again after the text is ignored",
        "the same, from a proxy that sends it with each retry of its own",
        Stream("anthropic", (_BEGUN, *_SAID, _BEGUN, *_ENDED)),
        (shows("Warm."), is_finished, reports_only_ids),
    ),
    Row(
        "A `message_start` of another message is an error",
        "the other side of the same question",
        Stream("anthropic", (_BEGUN, *_SAID, _OTHER, *_SAID, *_ENDED)),
        (is_unfinished,),
    ),
    Row(
        "A message that starts again from its first block is an error, not two answers in one",
        "the other side of the same question",
        Stream("anthropic", (_BEGUN, *_SAID, _BEGUN, *_SAID, *_ENDED)),
        (is_unfinished,),
    ),
    Row(
        "A call whose block is opened twice is one call",
        "the same, for the next event of the dialect",
        Stream("anthropic", (_BEGUN, _USE, _USE, *_USED, *_ENDED)),
        (calls_once, is_finished),
    ),
    Row(
        "A call whose block is opened again after its end is one call",
        "the same, for the next place",
        Stream("anthropic", (_BEGUN, _USE, *_USED, _USE, *_ENDED)),
        (calls_once, is_finished),
    ),
    Row(
        "A Responses call that is added again after its end is not run twice",
        "the same, for the next dialect",
        _response(_ADDED, _DONE, _ADDED),
        (calls_once, is_finished),
    ),
    Row(
        "A Responses call that ends twice, with other fields, is not run twice",
        "the same, for the end of the item",
        _response(_ADDED, _DONE, _DONE | {"item": _ITEM | {"status": None}}),
        (calls_once, is_finished),
    ),
    Row(
        "A call of Gemini's whose pieces all have its name is one call",
        "the same, for the next dialect",
        Stream(
            "gemini",
            (
                _piece(name="weather", willContinue=True),
                _piece(name="weather", willContinue=True),
                _piece(
                    name="weather",
                    willContinue=True,
                    partialArgs=[{"jsonPath": "$.city", "stringValue": "Ba", "willContinue": True}],
                ),
                _piece(
                    name="weather",
                    willContinue=True,
                    partialArgs=[{"jsonPath": "$.city", "stringValue": "sel"}],
                ),
                _piece(),
                _chunk("", "STOP"),
            ),
        ),
        (calls_once, is_finished),
    ),
    Row(
        "A Chat call whose id and name come again after its end is one call",
        "the same, for the next dialect",
        Stream(
            "openai-chat",
            (
                _delta(_HEAD),
                _delta(_MORE),
                _delta({}, "tool_calls"),
                _delta(_HEAD),
                "[DONE]",
            ),
        ),
        (calls_once, is_finished),
        ("anthropic", "openai-responses", "gemini", "ollama"),
    ),
    Row(
        "Text that follows Gemini's finish reason is part of a complete answer",
        "proxies that send `finishReason` with the first chunk",
        Stream("gemini", (_chunk("War", "STOP"), _chunk("m."))),
        (shows("Warm."), is_finished),
    ),
    Row(
        "Text that follows Chat's finish reason is part of the answer",
        "the same, in another dialect",
        Stream(
            "openai-chat",
            (_delta({"content": "War"}), _delta({}, "stop"), _delta({"content": "m."}), "[DONE]"),
        ),
        (shows("Warm."), is_finished),
    ),
)
