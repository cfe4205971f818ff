"""Test streams, each with the plain body of the same response."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.openai_chat.codec import DIALECT
from tests.wire import streams
from tests.wire.streams import Failure, Streams, decoding

DONE = b"data: [DONE]\n\n"
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}


def frame(value: Any) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A chunk with these choices."""
    return {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m",
            "choices": list(choices), **fields}  # fmt: skip


def chosen(
    delta: dict[str, Any], finish: str | None = None, index: int = 0, **fields: Any
) -> dict[str, Any]:
    """One choice of a chunk."""
    return {"index": index, "delta": delta, "finish_reason": finish, **fields}


def call(index: int | None, arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """A tool call delta."""
    piece: dict[str, Any] = {} if index is None else {"index": index}
    function = {k: fields.pop(k) for k in ("name",) if k in fields}
    if arguments is not None:
        function["arguments"] = arguments
    return {"tool_calls": [{**piece, **fields, "function": function}]}


def plain(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    """A plain body with one choice; `choice` adds fields to that choice."""
    more = fields.pop("choice", {})
    choice = {"index": 0, "message": {"role": "assistant", **message}, **more}
    if finish is not None:
        choice["finish_reason"] = finish
    return {"id": "c1", "object": "chat.completion", "created": 7, "model": "m",
            "choices": [choice], **fields}  # fmt: skip


def _answer(*deltas: dict[str, Any], finish: str = "stop") -> list[dict[str, Any]]:
    return [*[chunk(chosen(delta)) for delta in deltas], chunk(chosen({}, finish))]


def _function(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _detail(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", **fields, "format": "f", "index": index}


def _token(text: str) -> dict[str, Any]:
    return {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}


_ROLE = {"role": "assistant"}
_URL = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}
_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_SEARCH = {"index": 0, "type": "search", "arguments": '{"q": 1}'}
_SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
_TWO = [
    _function("call_a", "weather", '{"city": "Basel"}'),
    _function("call_b", "time", '{"zone": "CET"}'),
]

PAIRS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "text": (
        [
            chunk(chosen({**_ROLE, "content": "", "refusal": None}), obfuscation="xyz"),
            chunk(chosen({"content": "Grüezi"}), obfuscation="x"),
            chunk(chosen({"content": " mitenand 👋"}), usage=None),
            chunk(chosen({}, "stop")),
            chunk(usage=USAGE),
        ],
        plain({"content": "Grüezi mitenand 👋", "refusal": None}, usage=USAGE),
    ),
    "empty text": (_answer({**_ROLE, "content": ""}), plain({"content": ""})),
    "interleaved calls": (
        _answer(
            {**_ROLE, "content": None},
            call(0, "", id="call_a", type="function", name="weather"),
            call(1, "", id="call_b", type="function", name="time"),
            call(0, '{"city":'),
            call(1, '{"zone": "C'),
            call(0, ' "Basel"}'),
            call(1, 'ET"}'),
            finish="tool_calls",
        ),
        plain({"content": None, "tool_calls": _TWO}, "tool_calls"),
    ),
    "calls all at index 0": (
        _answer(
            {**_ROLE, "content": "Let me look."},
            call(0, '{"city": "Basel"}', id="call_a", type="function", name="weather"),
            call(0, '{"zone": "CET"}', id="call_b", type="function", name="time"),
        ),
        plain({"content": "Let me look.", "tool_calls": _TWO}),
    ),
    "calls without index": (
        _answer(
            call(None, '{"city"', id="call_a", type="function", name="weather"),
            call(None, ': "Basel"}'),
            call(None, '{"zone": "CET"}', id="call_b", type="function", name="time"),
        ),
        plain({"tool_calls": _TWO}),
    ),
    "signed call": (
        _answer(call(0, "{}", id="call_a", type="function", name="now", **_SIGNED)),
        plain({"tool_calls": [{**_function("call_a", "now", "{}"), **_SIGNED}]}),
    ),
    "call without id": (
        _answer(call(0, "{", type="function", name="now"), call(0, "}")),
        plain(
            {"tool_calls": [{"type": "function", "function": {"name": "now", "arguments": "{}"}}]}
        ),
    ),
    "custom tool": (
        _answer(
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_a",
                        "type": "custom",
                        "custom": {"name": "sql", "input": ""},
                    }
                ]
            },
            {"tool_calls": [{"index": 0, "custom": {"input": "select"}}]},
            {"tool_calls": [{"index": 0, "custom": {"input": " 1"}}]},
            finish="tool_calls",
        ),
        plain(
            {
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "custom",
                        "custom": {"name": "sql", "input": "select 1"},
                    }
                ]
            },
            "tool_calls",
        ),
    ),
    "unknown kind of call": (
        _answer({"tool_calls": [{"index": 0, "id": "x", "type": "odd", "odd": {"a": [1]}}]}),
        plain({"tool_calls": [{"id": "x", "type": "odd", "odd": {"a": [1]}}]}),
    ),
    "legacy function call": (
        _answer(
            {**_ROLE, "function_call": {"name": "weather", "arguments": ""}},
            {"function_call": {"arguments": '{"city":'}},
            {"function_call": {"arguments": ' "Basel"}'}},
            finish="function_call",
        ),
        plain(
            {"function_call": {"name": "weather", "arguments": '{"city": "Basel"}'}},
            "function_call",
        ),
    ),
    "reasoning_content": (
        _answer(
            {**_ROLE, "content": None, "reasoning_content": "Hm"},
            {"reasoning_content": "m."},
            {"content": "Yes."},
        ),
        plain({"reasoning_content": "Hmm.", "content": "Yes."}),
    ),
    "reasoning": (
        _answer(
            {"reasoning": "Hm", "channel": "analysis"}, {"reasoning": "m."}, {"content": "Yes."}
        ),
        plain({"reasoning": "Hmm.", "content": "Yes.", "channel": "analysis"}),
    ),
    "reasoning in both fields": (
        _answer(
            {"reasoning": "Hm", "reasoning_content": "Hm"},
            {"reasoning": "m.", "reasoning_content": "m."},
            {"content": "Yes."},
        ),
        plain({"reasoning_content": "Hmm.", "reasoning": "Hmm.", "content": "Yes."}),
    ),
    "reasoning details": (
        _answer(
            {"reasoning": "Hm", "reasoning_details": [_detail("text", text="Hm")]},
            {"reasoning": "m.", "reasoning_details": [_detail("text", text="m.")]},
            {"reasoning": None, "reasoning_details": [_detail("text", signature="c2ln")]},
            {"content": "Yes."},
            {"reasoning_details": [_detail("encrypted", 1, data="c2VhbGVk", id="r1")]},
        ),
        plain(
            {
                "reasoning": "Hmm.",
                "reasoning_details": [
                    _detail("text", text="Hmm.", signature="c2ln"),
                    _detail("encrypted", 1, data="c2VhbGVk", id="r1"),
                ],
                "content": "Yes.",
            }
        ),
    ),
    "unknown reasoning details": (
        _answer({"reasoning_details": [{"type": "reasoning.odd", "x": 1}]}, {"content": "Yes."}),
        plain({"reasoning_details": [{"type": "reasoning.odd", "x": 1}], "content": "Yes."}),
    ),
    "thinking in the content": (
        _answer(
            {**_ROLE, "content": ""},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m."}]}]},
            {"content": [{"type": "thinking", "thinking": []}]},
            {"content": "Ye"},
            {"content": [{"type": "text", "text": "s."}]},
            {"content": [{"type": "reference", "reference_ids": [1]}]},
            {"content": " Or no."},
        ),
        plain(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm."}]},
                    {"type": "text", "text": "Yes."},
                    {"type": "reference", "reference_ids": [1]},
                    {"type": "text", "text": " Or no."},
                ]
            }
        ),
    ),
    "refusal": (
        _answer(
            {**_ROLE, "content": None, "refusal": ""}, {"refusal": "I'm "}, {"refusal": "sorry"}
        ),
        plain({"content": None, "refusal": "I'm sorry"}),
    ),
    "annotations": (
        _answer({"content": "See "}, {"content": "A."}, {"annotations": [_URL]}),
        plain({"content": "See A.", "annotations": [_URL]}),
    ),
    "annotations before the text": (
        _answer({"annotations": [_URL]}, {"content": "See A."}),
        plain({"content": "See A.", "annotations": [_URL]}),
    ),
    "annotations without a text": (
        _answer({"content": None, "annotations": [_URL]}),
        plain({"content": None, "annotations": [_URL]}),
    ),
    "audio": (
        _answer(
            {**_ROLE, "content": None, "audio": {"id": "a1", "transcript": "Grü"}},
            {"audio": {"id": "a1", "transcript": "ezi"}},
            {"audio": {"id": "a1", "data": "AQ=="}},
            {"audio": {"id": "a1", "data": "Ag=="}},
            {"audio": {"id": "a1", "expires_at": 99}},
        ),
        plain(
            {
                "content": None,
                "audio": {"id": "a1", "data": "AQI=", "transcript": "Grüezi", "expires_at": 99},
            }
        ),
    ),
    "images": (
        _answer({"content": "Here."}, {"images": [_IMAGE]}),
        plain({"content": "Here.", "images": [_IMAGE]}),
    ),
    "executed tools": (
        _answer(
            {"executed_tools": [_SEARCH]},
            {"reasoning": "Hm."},
            {"executed_tools": [{**_SEARCH, "output": "found", "search_results": {"r": []}}]},
            {"content": "Yes."},
        ),
        plain(
            {
                "reasoning": "Hm.",
                "content": "Yes.",
                "executed_tools": [{**_SEARCH, "output": "found", "search_results": {"r": []}}],
            }
        ),
    ),
    "several choices": (
        [
            chunk(chosen({**_ROLE, "content": "A"}), chosen({**_ROLE, "content": "B"}, index=1)),
            chunk(chosen({"content": "b"}, index=1)),
            chunk(chosen({"content": "a"}, "stop")),
            chunk(chosen({}, "length", index=1)),
        ],
        {
            **plain({}),
            "choices": [
                {"index": 0, "message": {**_ROLE, "content": "Aa"}, "finish_reason": "stop"},
                {"index": 1, "message": {**_ROLE, "content": "Bb"}, "finish_reason": "length"},
            ],
        },
    ),
    "log probabilities": (
        [
            chunk(chosen({"content": "A"}, logprobs={"content": [_token("A")], "refusal": None})),
            chunk(chosen({"content": "b"}, logprobs={"content": [_token("b")], "refusal": None})),
            chunk(chosen({}, "stop", logprobs=None)),
        ],
        plain(
            {"content": "Ab"},
            choice={"logprobs": {"content": [_token("A"), _token("b")], "refusal": None}},
        ),
    ),
    "azure's filter": (
        [
            {
                "id": "",
                "object": "",
                "created": 0,
                "model": "",
                "choices": [],
                "prompt_filter_results": [{"prompt_index": 0}],
            },
            chunk(chosen({"content": "A"}, content_filter_results={"hate": {"filtered": False}})),
            chunk(chosen({}, "stop", content_filter_results={})),
            chunk(chosen({}, content_filter_offsets={"start": 1})),
        ],
        plain(
            {"content": "A"},
            prompt_filter_results=[{"prompt_index": 0}],
            choice={
                "content_filter_results": {"hate": {"filtered": False}},
                "content_filter_offsets": {"start": 1},
            },
        ),
    ),
    "unknown fields": (
        [
            chunk(
                chosen({"content": "A", "odd": {"a": 1}}), system_fingerprint="f", x_groq={"id": 1}
            ),
            chunk(chosen({"odd": {"b": None}}, "stop", stop_reason=None), x_groq={"queue": 2}),
        ],
        plain(
            {"content": "A", "odd": {"a": 1, "b": None}},
            system_fingerprint="f",
            x_groq={"id": 1, "queue": 2},
            choice={"stop_reason": None},
        ),
    ),
    "whole messages": (
        [
            chunk(
                {
                    "index": 0,
                    "message": {**_ROLE, "content": "All at once."},
                    "finish_reason": "stop",
                }
            )
        ],
        plain({"content": "All at once."}),
    ),
}


def stream(name: str) -> bytes:
    """The stream of a pair, as bytes."""
    return b"".join(map(frame, PAIRS[name][0])) + DONE


decoded = decoding(DIALECT)


def encoded(events: Iterable[Event], *, include_usage: bool = True) -> bytes:
    """Encodes events as a stream."""
    encoder = DIALECT.stream_encoder(include_usage=include_usage)
    return b"".join([*map(encoder.feed, events), encoder.close()])


def body_of(response: Response) -> dict[str, Any]:
    """The response as a plain body, which shows all of its content."""
    body: dict[str, Any] = json.loads(DIALECT.encode_response(response).to_bytes())
    return body


def chunks_of(written: bytes) -> list[dict[str, Any]]:
    """The chunks of a stream, without the final `[DONE]`."""
    frames = written.decode().split("\n\n")
    return [json.loads(f.removeprefix("data: ")) for f in frames if f and "[DONE]" not in f]


# --- for the tests of all dialects


def _ended(stream: bytes, *, may_be_odd: bool = False) -> str:
    if stream.endswith(DONE):
        return "complete"
    assert may_be_odd or b"[DONE]" not in stream
    assert "error" in chunks_of(stream)[-1]
    return "failed"


def _failure(event: bytes, code: str | None = None, status: int | None = None) -> Failure:
    stream = frame(chunk(chosen({"content": "a"}))) + event + b"\n\n" + DONE
    return Failure(stream, "no", code, status, text="a")


_OTHERS = "other_openai_compatible/"
TABLE = {"openai-chat": Streams(
    dialect=DIALECT,
    bodies={name: body for name, (_, body) in PAIRS.items()},
    frames={name: [*chunks, "[DONE]"] for name, (chunks, _) in PAIRS.items()},
    written=lambda frames: b"".join(DONE if one == "[DONE]" else frame(one) for one in frames),
    encoder=partial(DIALECT.stream_encoder, include_usage=True),
    ended=_ended,
    said=streams.said,
    last=[b"[DONE]"],
    failures={
        "named": _failure(
            b'event: error\ndata: {"error":{"message":"no","code":"bad","status_code":400}}',
            "bad", 400,
        ),
        "numbered": _failure(
            b'data: {"error":{"message":"no","code":429,"type":"limit"}}', "limit", 429
        ),
        "without an object": _failure(b'event: error\ndata: {"message":"no"}'),
        "text": _failure(b'data: {"error":"no"}'),
    },
    in_pieces=(
        [*PAIRS["text"][0], "[DONE]"],
        "ResponseStart PartStart PartDelta PartStop ChoiceFinish UsageUpdate ResponseEnd",
        ["Grüezi", " mitenand 👋"],
    ),
    words=["text", "user", "assistant", "tool", "function", "object", "\ud800", "\x00"],
    keys=["choices", "delta", "content", "tool_calls", "function", "refusal", "audio", "reasoning",
          "images", "reasoning_details", "executed_tools", "annotations", "function_call", "index",
          "usage", "error", "x"],
    recorded_faults={
        "groq/pydantic-ai__test_groq-test_tool_use_failed_error_streaming__00.json": "failed",
        "groq/pydantic-ai__test_groq-test_tool_use_failed_error_streaming_with_text__00.json":
            "failed",
        f"{_OTHERS}pydantic-ai__test_openrouter-test_openrouter_stream_error__00.json": "failed",
        "openai_chat/ai____fixtures__-azure-deepseek-reasoning.1.json": "unfinished",
        # Perplexity never sends `[DONE]`: `ends_with_done=False` is for such servers.
        f"{_OTHERS}prism__perplexity-stream-basic-text-1.json": "unfinished",
        f"{_OTHERS}rig__prompt_caching-streaming_probe__00~2.json": "unfinished",
        f"{_OTHERS}rig__prompt_caching-streaming_probe__02~4.json": "unfinished",
        f"{_OTHERS}rig__raw_stream_capture_matrix-stream_raw_round_trips_terminal_type__00.json":
            "unfinished",
        f"{_OTHERS}rig__streaming-streaming_smoke__00.json": "unfinished",
    },
    order="other",
    decided_before=None,
)}  # fmt: skip
