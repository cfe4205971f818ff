"""Every dialect's streams to every other: streamed and plain have the same content and losses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import Refusal, Text, Thinking, ToolCall
from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.media import Media
from dragoman.model.parts import Citation, Origin, ServerToolCall, ServerToolResult
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.envelope import unwrap
from dragoman.wire.stream_encoding import CORRECTED
from dragoman.wire.unsealing import unsealed
from tests.corpus import Corpus
from tests.wire.recorded import decoded
from tests.wire.streamed import folded, read, written

PAIRS = [(a, b) for a in dragoman.dialects() for b in dragoman.dialects()]
_CORRECTED = frozenset({
    # The final event differs from the deltas (truncated by hand), or has another id,
    "openai_responses/ai____fixtures__-openai-shell-container.1.json",
    "openai_responses/ai____fixtures__-github-copilot-id-rotation.1.json",
    "openai_responses/rig__reasoning_roundtrip-streaming__00.json",
    "openai_responses/rig__reasoning_roundtrip-streaming__01.json",
    # or another fingerprint.
    "openai_responses/ai____fixtures__-programmatic-tool-calling.1.json",
})  # fmt: skip
_SEALED_ANEW = re.compile(r'"encrypted_content": "[^"]*"')
_LEAST = {"anthropic": 40, "gemini": 20, "ollama": 6, "openai-chat": 90, "openai-responses": 30}


def _said(response: Response, ids: set[str], cut_off: set[str]) -> dict[str, Any]:
    """The content of a response; how texts and thinking are split makes no difference."""
    usage = response.usage
    told: dict[str, Any] = {
        "model": response.model or None,
        "usage": usage and (usage.input, usage.output, usage.cache_read, usage.cache_write),
    }
    for choice in response.choices:
        parts = choice.message.parts
        told[f"choices[{choice.index}]"] = {
            "text": "".join(p.text for p in parts if isinstance(p, Text)),
            "thinking": "".join(p.text for p in parts if isinstance(p, Thinking)),
            "refusal": "".join(p.text for p in parts if isinstance(p, Refusal)),
            "calls": [_call(p, ids, cut_off) for p in parts if isinstance(p, ToolCall)],
            "citations": sorted(str(_citation(c)) for p in parts if isinstance(p, Text)
                                for c in p.citations),
            "media": [p for p in parts if isinstance(p, Media)],
            "executed": [p for p in parts if isinstance(p, (ServerToolCall, ServerToolResult))],
            "state": _states(parts),
            "call state": [_call_state(p) for p in unsealed(parts, "") if isinstance(p, ToolCall)],
            "finish": choice.finish,
        }  # fmt: skip
    return told


def _call(call: ToolCall, ids: set[str], cut_off: set[str]) -> tuple[Any, ...]:
    arguments: Any = call.raw_arguments
    if call.name in cut_off:  # deltas that were sent can't be corrected
        return (call.id if call.id in ids else None, call.name)
    if call.kind == "function" and call.has_valid_arguments:
        arguments = json.dumps(dict(call.arguments), sort_keys=True, default=str)
    return (call.id if call.id in ids else None, call.name, call.kind, arguments)


def _citation(citation: Any) -> tuple[Any, ...]:
    return (citation.kind, citation.url, citation.title, citation.quote)


def _states(parts: Iterable[AnyPart]) -> list[str]:
    """The state that only the provider can read, its own or in an envelope, of each part."""
    found: list[str] = []
    for part in parts:
        data = part.data if isinstance(part, Thinking) else None
        seal = unwrap(part.signature) or unwrap(data)
        if seal is None:
            if part.signature or data:
                found.append(f"{type(part).__name__} {part.signature} {data}")
            continue
        state = seal.part.replace(origin=None)
        if isinstance(state, ToolCall):
            continue  # in the start and in the stop event: `_call_state` has the final one
        if isinstance(state, Thinking):
            if not state.signature and not state.data:
                continue  # interrupted thinking is sealed in pieces, which can't be verified
            if seal.origin.dialect == "openai-responses":
                state = state.replace(data="")
        place = f"{seal.origin.dialect} {seal.owner} {seal.at} {seal.leads}"
        found.append(f"{place} {_document(state)}")
    return sorted(found)


def _call_state(call: ToolCall) -> tuple[Any, ...]:
    """The state of a call for its provider; None if that is the front's own dialect."""
    if call.origin is None:
        return ()
    return (call.origin.dialect, call.signature, call.item_id, call.extras)


def _document(part: AnyPart) -> str:
    """A part, without what Responses re-encrypts in the last event of a stream."""
    document = json.dumps(msgspec.to_builtins(part), sort_keys=True, default=str)
    return _SEALED_ANEW.sub("", document)


_LATE = "citations received after the end of their text are left out"
"""Of answers whose sources come last: Anthropic's blocks end before."""


def _losses(losses: Any) -> set[tuple[str, str]]:
    """Losses of the answer; a stream may have others for events without a plain form."""
    return {(loss.path, loss.reason) for loss in losses if loss.path != "events"}


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_streamed_and_plain_answers_are_equal(corpus: Corpus, source: str, target: str) -> None:
    """The content and the losses do not depend on streaming."""
    count = 0
    for file, _, source_decoder, events in decoded(corpus, source):
        if not source_decoder.is_complete:
            continue
        count += 1
        response = folded(events)
        stream, losses = written(target, events)
        decoder = read(target, stream)
        assert decoder.is_complete, file
        if file in _CORRECTED:
            continue
        plain = dragoman.dialect(target).encode_response(response)
        whole = dragoman.dialect(target).decode_response(plain.to_bytes())
        cut_off = {call.name for c in response.choices for call in c.message.tool_calls
                   if not call.has_valid_arguments}  # fmt: skip
        ids = {call.id for c in response.choices for call in c.message.tool_calls
               if call.wire_id is not None}  # fmt: skip
        streamed, told = _said(decoder.response, ids, cut_off), _said(whole, ids, cut_off)
        for choice in response.choices:
            key = f"choices[{choice.index}]"
            if target == "gemini" and choice.finish is None:  # its clients would wait for one
                assert streamed[key].pop("finish") is FinishReason.OTHER
                del told[key]["finish"]
            if any(loss.reason == _LATE for loss in losses):
                del streamed[key]["citations"], told[key]["citations"]
        assert streamed == told, file
        found = {loss for loss in _losses(losses) if loss[1] != _LATE}
        assert found == _losses(plain.losses), file
    assert count >= _LEAST[source]


# --- a prompt that was blocked

_BLOCKED = {
    "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
    "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
    "modelVersion": "gemini-x",
    "responseId": "r1",
}
_FILTERED = {FinishReason.CONTENT_FILTER, FinishReason.REFUSAL}


def _blocked_events() -> list[Event]:
    decoder = dragoman.dialect("gemini").stream_decoder()
    events = decoder.feed(b"data: " + json.dumps(_BLOCKED).encode() + b"\r\n\r\n")
    return events + decoder.close()


@pytest.mark.parametrize("target", dragoman.dialects())
def test_a_blocked_prompt_is_reported(target: str) -> None:
    """Plain or streamed, the finish reason is a content filter, or that is a loss."""
    speaker = dragoman.dialect(target)
    encoded = speaker.encode_response(dragoman.dialect("gemini").decode_response(_BLOCKED))
    stream, losses = written(target, _blocked_events())
    decoder = read(target, stream)
    assert decoder.is_complete
    assert _losses(losses) == _losses(encoded.losses)
    for response in (speaker.decode_response(encoded.to_bytes()), decoder.response):
        if target == "ollama":  # which has only two reasons
            assert any(loss.path == "choices[0].finish" for loss in losses)
        else:
            assert response.choices[0].finish in _FILTERED


# --- truncated streams

_ANSWER: list[Event] = [
    ResponseStart(id="r1", model="m"),
    PartStart(0, Thinking("")), PartDelta(0, "Hm, grüezi."), PartStop(0),
    PartStart(1, Text("")), PartDelta(1, "Grüezi "), PartDelta(1, "👋"), PartStop(1),
    ToolCallDelta(0, "call_1", "weather", '{"city"'), ToolCallDelta(0, None, None, ': "Basel"}'),
    ToolCallDelta(1, "call_2", "time", "{}"),
    UsageUpdate(Usage(9, 4)), ChoiceFinish(FinishReason.TOOL_CALLS), ResponseEnd(),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_a_truncated_stream_is_not_complete(dialect: str) -> None:
    """Cut anywhere before its last event, a stream is not complete."""
    stream, _ = written(dialect, _ANSWER)
    ends = [cut for cut in range(len(stream)) if read(dialect, stream[:cut]).is_complete]
    last = stream.rstrip().rfind(b"\n") + 1
    assert all(cut >= last for cut in ends)
    assert all(not stream[cut:].strip() for cut in ends if dialect != "openai-responses")


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_single_bytes_give_the_same_response(dialect: str) -> None:
    """Decoding byte by byte gives the same response as decoding at once."""
    stream, _ = written(dialect, _ANSWER)
    one = read(dialect, *[bytes([byte]) for byte in stream])
    assert one.is_complete
    assert one.response == read(dialect, stream).response


# --- final forms in stop events (W26)


def _stopped(start: AnyPart, said: str, final: AnyPart) -> list[Event]:
    """A part that is sent in a delta, and once more in its stop event."""
    start_of_all = ResponseStart(id="r1", model="m", origin=Origin(dialect="elsewhere"))
    return [start_of_all, PartStart(0, start), PartDelta(0, said), PartStop(0, final),
            ChoiceFinish(FinishReason.STOP), ResponseEnd()]  # fmt: skip


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_a_final_form_adds_missing_content(dialect: str) -> None:
    """Text, thinking, refusals and calls are completed by the stop event."""
    for start in (Text(""), Thinking(""), Refusal("")):
        stream, losses = written(dialect, _stopped(start, "Hel", start.replace(text="Hello")))
        parts = read(dialect, stream).response.message.parts
        assert "".join(getattr(part, "text", "") for part in parts) == "Hello"
        assert CORRECTED not in {loss.reason for loss in losses}
    call = ToolCall("c1", "f", raw="")
    stream, _ = written(dialect, _stopped(call, '{"a"', call.replace(raw='{"a": 1}')))
    assert read(dialect, stream).response.tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("dialect", [d for d in dragoman.dialects() if d != "openai-responses"])
def test_a_correction_is_a_loss(dialect: str) -> None:
    """Text that was sent can't be corrected; only Responses repeats it at the end."""
    for start in (Text(""), Thinking("")):
        stream, losses = written(dialect, _stopped(start, "Yes.", start.replace(text="No.")))
        heard = read(dialect, stream).response.message.parts[0]
        assert getattr(heard, "text", "") == "Yes."
        assert [loss.path for loss in losses if loss.reason == CORRECTED] == [
            "choices[0].message.parts[0]"
        ]


_GEMINIS, _CHATS, _CLAUDES, _RESPONSES = (
    Origin(dialect=home) for home in ("gemini", "openai-chat", "anthropic", "openai-responses")
)


@pytest.mark.parametrize("dialect", dragoman.dialects())
@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([PartStart(0, Thinking("", signature="c2ln", origin=_GEMINIS)), PartDelta(0, "<1>"),
          PartStop(0), PartStop(0, Thinking("<1><2>", signature="c2ln", origin=_GEMINIS))],
         ["<1>", "<2>"]),
        ([PartStart(0, Thinking("")), PartStop(0), PartStart(1, Text("")), PartStop(1),
          PartStop(0, Thinking("<1>"))], ["<1>"]),
        ([PartStart(0, ServerToolCall("s1", "search", {}, origin=_CHATS)),
          PartStop(0, Text("<1>"))], ["<1>"]),
        ([PartStart(0, ServerToolCall("s1", "search", {}, origin=_RESPONSES)),
          PartStop(0, Text("<1>"))], ["<1>"]),
        ([PartStart(0, Thinking("", signature="c2ln", origin=_CLAUDES)), PartDelta(0, "..."),
          PartStart(1, Text("")), PartStop(0, Text("<1>"))], ["<1>"]),
    ],
)  # fmt: skip
def test_a_late_final_form_arrives_once_or_is_lost(
    dialect: str, events: list[Event], words: list[str]
) -> None:
    """A second stop event, or one with another type, is never ignored silently."""
    stream, losses = written(dialect, [*events, ResponseEnd()])
    parts = read(dialect, stream).response.message.parts
    heard = "".join(part.text for part in parts if isinstance(part, (Text, Thinking)))
    is_lost = any(loss.path == "choices[0].message.parts[0]" for loss in losses)
    assert is_lost or [heard.count(word) for word in words] == [1] * len(words)


def test_a_seal_directly_follows_its_thinking() -> None:
    """Chat servers don't mark the end of thinking; its seal still comes before the text."""
    home = Origin(dialect="openai-chat")
    events: list[Event] = [
        ResponseStart(id="r1", model="m", origin=home),
        PartStart(0, Thinking("")), PartDelta(0, "Hm."),
        PartStart(1, Text("")), PartDelta(1, "Yes."),
        PartDelta(0, " More."), PartDelta(1, " No."), PartDelta(0, signature="c2ln"),
        ChoiceFinish(FinishReason.STOP), ResponseEnd(),
    ]  # fmt: skip
    for front in ("anthropic", "openai-responses"):
        parts = read(front, written(front, events)[0]).response.message.parts
        shown = [part.text for part in parts if isinstance(part, (Text, Thinking)) and part.text]
        assert shown == ["Hm.", "Yes.", " More.", " No."]
        assert [bool(_seal(part)) for part in parts] == [True, False, True, False, True]
        (late,) = [part for part in unsealed(parts, front) if part.signature == "c2ln"]
        assert isinstance(late, Thinking)
        assert late.text == " More."


def _seal(part: AnyPart) -> Any:
    return unwrap(part.signature) or unwrap(part.data if isinstance(part, Thinking) else None)


def test_late_citations_are_in_the_last_event() -> None:
    """Responses repeats its items, with citations that came after their end."""
    cited = PartDelta(0, citations=(Citation(kind="url_citation", url="https://a.example"),))
    events: list[Event] = [
        ResponseStart(id="r1", model="m"), PartStart(0, Text("See.")), PartStop(0), cited,
        ChoiceFinish(FinishReason.STOP), ResponseEnd(),
    ]  # fmt: skip
    (text,) = read(
        "openai-responses", written("openai-responses", events)[0]
    ).response.message.parts
    assert isinstance(text, Text)
    assert [citation.url for citation in text.citations] == ["https://a.example"]


def test_a_truncated_call_gets_no_arguments() -> None:
    """An empty object would make it look like a complete call (I7)."""
    events: list[Event] = [
        ResponseStart(id="r1", model="m"), ToolCallDelta(0, "c1", "f", ""),
        ChoiceFinish(FinishReason.LENGTH), ResponseEnd(),
    ]  # fmt: skip
    for dialect in ("openai-chat", "openai-responses"):
        (call,) = read(dialect, written(dialect, events)[0]).response.tool_calls
        assert call.raw_arguments == ""
