"""Gemini's streams: plain and streamed pairs, split, truncated and mutated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import WireError
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    StreamError,
    UsageUpdate,
)
from dragoman.model.media import Audio, Image
from dragoman.model.parts import (
    Citation,
    Opaque,
    Refusal,
    ServerToolCall,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.cut_calls import LEFT_OUT
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.stream_chunks import Form
from dragoman.wire.gemini.stream_encoder import StreamEncoder
from dragoman.wire.losses import Note
from tests.wire.gemini.streams import (
    ARRAYS,
    BODIES,
    MALFORMED,
    STREAMS,
    Chunk,
    candidate,
    decoded,
    encoded,
    said,
    sent,
    written,
)
from tests.wire.streams import END
from tests.wire.streams import START as DATED

START = DATED.replace(created_at=None)
FORMS: tuple[Form, ...] = ("sse", "array")


def chunk(*parts: Any, **fields: Any) -> Chunk:
    """A chunk with a candidate of these parts."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    return {"candidates": [{**content, **fields}]}


def elsewhere(*events: Event) -> tuple[list[Any], Chunk, list[str]]:
    """Encodes foreign events; returns the parts, the last chunk, and losses and repairs."""
    encoder, stream = encoded([START, *events, *END])
    assert decoded(stream)[0].is_complete
    chunks = sent(stream)
    parts = [p for c in chunks[:-1] for p in c["candidates"][0]["content"]["parts"]]
    notes: list[Note] = [*encoder.losses, *encoder.repairs]
    return parts, chunks[-1], [note.reason for note in notes]


# --- reading


def test_array_needs_its_closing_bracket() -> None:
    """An unclosed array is incomplete, even after a finish; a single object is complete."""
    array = ARRAYS["text"].rstrip()
    assert decoded(array)[0].is_complete
    assert not decoded(array[:-1])[0].is_complete
    assert decoded(json.dumps(BODIES["text"], indent=1).encode())[0].is_complete


def test_signed_text_is_not_merged() -> None:
    """The texts before and after a signed one aren't merged with it (W85)."""
    pieces: list[Chunk] = [
        {"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": "s1"}, {"text": "d"},
        {"text": "", "thoughtSignature": "s2"}, {"text": "e", "thought": True}, {"text": "f"},
        {"text": ""}, {"text": "", "thought": True}, {"text": "g"},
    ]  # fmt: skip
    stream = written([*map(chunk, pieces), chunk(finishReason="STOP")])
    parts = decoded(stream)[0].response.message.parts
    assert [(type(p), getattr(p, "text", None), p.signature) for p in parts] == [
        (Text, "ab", None), (Text, "c", "s1"), (Text, "d", None), (Text, "", "s2"),
        (Thinking, "e", None), (Text, "fg", None),
    ]  # fmt: skip


def test_the_last_usage_counts() -> None:
    """Counts aren't summed, and counts missing in the last chunk aren't kept (W98)."""
    chunks = [
        {**chunk({"text": "a"}), "usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": 9}},
        {**chunk(finishReason="STOP"), "usageMetadata": {"promptTokenCount": 4}},
    ]
    decoder, events = decoded(written(chunks))
    assert decoder.response.usage == Usage(input=4)
    assert sum(isinstance(event, UsageUpdate) for event in events) == 1
    cut, _ = decoded(written(chunks[:1]))
    assert cut.response.usage == Usage(input=3, thinking=9)


def test_candidate_may_continue_after_its_finish() -> None:
    """After a finish with more parts, the stream is complete only at the next finish."""
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    chunks = [
        chunk(code, finishReason="STOP"),
        chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
        chunk({"text": "One."}, finishReason="MAX_TOKENS"),
        chunk({"text": ""}),
    ]
    complete = [decoded(written(chunks[:n]))[0].is_complete for n in range(1, 5)]
    assert complete == [True, False, True, True]
    decoder, events = decoded(written(chunks))
    assert decoder.response.finish is FinishReason.LENGTH
    assert sum(isinstance(event, ChoiceFinish) for event in events) == 1


def test_repeated_finish_reasons_are_accepted() -> None:
    """A finish reason in every chunk doesn't split the text."""
    chunks = [chunk({"text": letter}, finishReason="STOP") for letter in "abc"]
    decoder, _ = decoded(written(chunks))
    assert decoder.response.message.parts == (Text("abc"),)
    assert decoder.is_complete


@pytest.mark.parametrize("word", [None, 0, "FINISH_REASON_UNSPECIFIED", True, [], {"a": 1}])
def test_unspecified_finish_reason_is_ignored(word: Any) -> None:
    """An unspecified finish reason doesn't end a candidate."""
    assert not decoded(written([chunk({"text": "a"}, finishReason=word)]))[0].is_complete


def test_candidates_are_separate() -> None:
    """Each candidate has its own parts and finish, and all must finish."""
    chunks: list[Chunk] = [
        {"candidates": [candidate({"text": "a"}, finishReason=None),
                        candidate({"text": "x"}, finishReason=None, index=1)]},
        {"candidates": [candidate({"text": "y"}, index=1)]},
        {"candidates": [candidate({"text": "b"}, finishReason="SAFETY")]},
    ]  # fmt: skip
    assert not decoded(written(chunks[:2]))[0].is_complete
    decoder, events = decoded(written(chunks))
    assert decoder.is_complete
    assert [choice.message.text for choice in decoder.response.choices] == ["ab", "xy"]
    assert [choice.finish for choice in decoder.response.choices] == [
        FinishReason.CONTENT_FILTER,
        FinishReason.STOP,
    ]
    assert said(decoded(encoded(events)[1])[0].response) == said(decoder.response)


def test_blocked_prompt_is_a_complete_response() -> None:
    """Without candidates, a block reason completes the stream."""
    decoder, _ = decoded(STREAMS["blocked"])
    assert decoder.is_complete
    assert decoder.response.finish is FinishReason.CONTENT_FILTER
    assert decoder.response.extras["gemini"]["promptFeedback"]["blockReason"] == "SAFETY"
    assert not decoded(written([{"promptFeedback": {"safetyRatings": []}}]))[0].is_complete


def test_growing_citations_replace_earlier_ones() -> None:
    """A citation with the same start replaces the earlier one; others are added."""

    def found(*spans: tuple[int, int]) -> Chunk:
        sources = [{"startIndex": a, "endIndex": b, "uri": "https://example.com"} for a, b in spans]
        return chunk({"text": "word "}, citationMetadata={"citationSources": sources})

    chunks = [found((0, 4)), chunk({"text": "word "}), found((0, 14)), found((20, 24), (0, 15)),
              chunk(finishReason="RECITATION")]  # fmt: skip
    decoder, _ = decoded(written(chunks))
    (text,) = decoder.response.message.parts
    assert isinstance(text, Text)
    assert [(c.start, c.end) for c in text.citations] == [(0, 15), (20, 24)]


def test_grounding_metadata_is_merged() -> None:
    """Empty values in later chunks don't remove earlier grounding metadata."""
    chunks = [
        chunk({"text": "It is so."}, groundingMetadata={"webSearchQueries": ["q"]}),
        chunk({"text": " Yes."}, groundingMetadata={}),
        chunk({"text": ""}, finishReason="STOP", groundingMetadata={
            "webSearchQueries": [],
            "groundingChunks": [{"web": {"uri": "https://example.com", "title": "A"}}],
            "groundingSupports": [{"segment": {"endIndex": 9, "text": "It is so."},
                                   "groundingChunkIndices": [0]}]}),
    ]  # fmt: skip
    response = decoded(written(chunks))[0].response
    (text,) = response.message.parts
    assert isinstance(text, Text)
    assert [(c.url, c.quote) for c in text.citations] == [("https://example.com", "It is so.")]
    metadata = DIALECT.encode_response(response).body["candidates"][0]["groundingMetadata"]
    assert metadata["webSearchQueries"] == ["q"]


def test_log_probabilities_are_concatenated() -> None:
    """The log probabilities of all chunks are concatenated."""
    chunks = [
        chunk({"text": token}, logprobsResult={"chosenCandidates": [{"token": token}], "sum": sum_})
        for sum_, token in enumerate("ab")
    ]
    response = decoded(written([*chunks, chunk(finishReason="STOP")]))[0].response
    assert response.choices[0].logprobs == {
        "chosenCandidates": [{"token": "a"}, {"token": "b"}],
        "sum": 1,
    }


def test_raw_audio_chunks_are_joined() -> None:
    """PCM chunks are joined bytewise; audio in a container isn't."""

    def sound(data: str, mime: str) -> Chunk:
        return chunk({"inlineData": {"mimeType": mime, "data": data}})

    pcm = "audio/L16;codec=pcm;rate=24000"
    pieces = [sound("AAE=", pcm), sound("AgM=", pcm), sound("AAAA", "audio/wav"),
              sound("AAAA", "audio/wav")]  # fmt: skip
    decoder, events = decoded(written([*pieces, chunk(finishReason="STOP")]))
    parts = decoder.response.message.parts
    assert [getattr(p, "data", None) for p in parts] == ["AAECAw==", "AAAA", "AAAA"]
    assert said(decoded(encoded(events)[1])[0].response) == said(decoder.response)


# --- streamed calls


def _piece(*partial: Chunk, **fields: Any) -> Chunk:
    call: Chunk = {**({"partialArgs": list(partial)} if partial else {}), **fields}
    return chunk({"functionCall": call})


STREAMED_CALL = [
    chunk({"functionCall": {"name": "cook", "id": "c1", "willContinue": True},
           "thoughtSignature": "s"}),
    _piece({"jsonPath": "$.dish", "stringValue": "Rö", "willContinue": True}, willContinue=True),
    _piece({"jsonPath": "$.dish", "stringValue": "sti", "willContinue": True}, willContinue=True),
    _piece({"jsonPath": "$.dish", "stringValue": ""}, willContinue=True),
    _piece(willContinue=True),
    _piece({"jsonPath": "$.steps[0].text", "stringValue": "grate"},
           {"jsonPath": "$.steps[0].minutes", "numberValue": 5}, willContinue=True),
    _piece({"jsonPath": "$.steps[1]['a.b']", "boolValue": True},
           {"jsonPath": '$["it\\"s"]', "nullValue": "NULL_VALUE"}, willContinue=True),
]  # fmt: skip
ARGUMENTS = {
    "dish": "Rösti",
    "steps": [{"text": "grate", "minutes": 5}, {"a.b": True}],
    'it"s': None,
}


def test_arguments_may_be_streamed() -> None:
    """A call that Vertex AI streams is complete at its end, and is written whole (W87)."""
    ends = [_piece(), _piece(), chunk(finishReason="STOP")]
    decoder, events = decoded(written([*STREAMED_CALL, *ends]))
    assert decoder.is_complete
    (call,) = decoder.response.message.parts
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.signature) == ("c1", "cook", "s")
    assert call.arguments == ARGUMENTS
    assert decoder.response.finish is FinishReason.TOOL_CALLS
    chunks = sent(encoded(events)[1])
    assert chunks[0]["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "cook", "id": "c1", "args": ARGUMENTS}, "thoughtSignature": "s"}
    ]


@pytest.mark.parametrize("count", range(1, len(STREAMED_CALL) + 1))
@pytest.mark.parametrize("is_cut", [True, False])
def test_truncated_call_has_invalid_arguments(count: int, is_cut: bool) -> None:
    """Before its end, a streamed call has invalid arguments and can't be run."""
    end = [] if is_cut else [chunk(finishReason="MAX_TOKENS")]
    decoder, events = decoded(written([*STREAMED_CALL[:count], *end]))
    (call,) = decoder.response.tool_calls
    assert not call.has_valid_arguments
    assert decoder.is_complete is not is_cut
    encoder, _ = encoded(events)
    assert encoder.losses or encoder.repairs


def test_call_ends_when_the_next_part_starts() -> None:
    """A call without its promised continuation is kept apart from the next part."""
    other = chunk({"functionCall": {"name": "now", "willContinue": True}})
    text = chunk({"text": "So."}, finishReason="STOP")
    response = decoded(written([*STREAMED_CALL[:2], other, _piece(), text]))[0].response
    first, second, last = response.message.parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.name, first.has_valid_arguments) == ("cook", False)
    assert (second.name, second.arguments) == ("now", {})
    assert last == Text("So.")


@pytest.mark.parametrize("odd", [{}, {"jsonPath": None}, {"jsonPath": 7}])
def test_delta_without_a_path_is_kept(odd: dict[str, Any]) -> None:
    """It continues the open text before it, or gets an empty name."""
    begin = chunk({"functionCall": {"name": "f", "willContinue": True}})
    first = {"jsonPath": "$.dish", "stringValue": "so", "willContinue": True}
    more = {**odd, "stringValue": "up"}
    for pieces, arguments in (((first, more), {"dish": "soup"}), ((more,), {"": "up"})):
        stream = written([begin, *(_piece(one, willContinue=True) for one in pieces), _piece()])
        decoder, _ = decoded(stream)
        (call,) = decoder.response.message.tool_calls
        assert call.arguments == arguments


@pytest.mark.parametrize(
    "piece",
    [
        {"jsonPath": "dish"},
        {"jsonPath": "$"},
        {"jsonPath": "$..a"},
        {"jsonPath": "$.a["},
        {"jsonPath": "$[0]"},
        {"jsonPath": "$.list[9]", "numberValue": 1},
        {"jsonPath": "$.dish.more", "numberValue": 1},
        "odd",
    ],
)
def test_invalid_path_raises_wire_error(piece: Any) -> None:
    """An invalid path raises `WireError`, which doesn't quote it."""
    begin = chunk({"functionCall": {"name": "f", "args": {"dish": "x"}, "willContinue": True}})
    with pytest.raises(WireError) as caught:
        decoded(written([begin, _piece(piece, willContinue=True)]))
    assert "dish" not in str(caught.value)


# --- errors and malformed input


@pytest.mark.parametrize("body", MALFORMED)
def test_malformed_error_is_written_alone(body: bytes) -> None:
    """Plain, in an array or an event, malformed or not, it is an error and is written again."""
    (again,) = sent(encoded(decoded(body)[1])[1])
    assert next(iter(again)) == "error"
    assert isinstance(again["error"]["code"], int) or b'"code": "x"' in body or b"9e3" in body


def test_format_variations_are_accepted() -> None:
    """Comments, missing blank lines, `[DONE]`, a BOM and non-list parts are accepted."""
    chunks = [
        {"candidates": [{"content": {"parts": {"text": "Hel"}}}]},
        {"candidates": [{"content": {"parts": None}}], "usageMetadata": None},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}}]},
        {"candidates": None, "modelVersion": "m"},
        {"candidates": [{"content": {}, "finishReason": 1}]},
    ]
    lines = [f"data:{json.dumps(chunk)}\n" for chunk in chunks]
    stream = ("\n: hello\n" + "".join(lines) + "\ndata: [DONE]\n\n").encode()
    for raw in (b"\xef\xbb\xbf" + stream, b"\n \n" + stream):
        decoder, events = decoded(raw, range(len(raw)))
        assert decoder.is_complete
        assert decoder.response.message.parts == (Text("Hello"),)
        assert decoder.response.model == "m"
        assert decoder.response.finish is FinishReason.STOP
        assert said(decoded(encoded(events)[1])[0].response)["choices"]


@pytest.mark.parametrize("data", [b"[1]", b"[{}] x", b'["a"]', b"[{}}", b"[nonsense"])
def test_invalid_array_raises_wire_error(data: bytes) -> None:
    """Anything but an array of objects raises `WireError` at once."""
    with pytest.raises(WireError):
        decoded(data)


def test_deep_nesting_raises_wire_error() -> None:
    """JSON nested too deeply raises `WireError`, wherever it is."""
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(WireError):
        decoded(b'data: {"candidates": %b}\n\n' % deep)
    deep = b'{"a":' * 400 + b"1" + b"}" * 400
    with pytest.raises(WireError):
        decoded(b'data: {"candidates": [{"content": {"parts": [%b]}}]}\n\n' % deep)
    for where in ('"groundingMetadata":%b', '"content":{"odd":%b}', '"odd":%b'):
        wire = b'{"candidates":[{"finishReason":"STOP",%b}]}' % (where.encode() % deep)
        with pytest.raises(WireError):
            decoded(b"data: %b\n\n" % wire)


def test_end_is_reported_once() -> None:
    """Closing again or feeding after the end gives no events."""
    decoder, events = decoded(STREAMS["text"])
    assert sum(isinstance(event, ResponseEnd) for event in events) == 1
    assert decoder.close() == []
    assert decoder.feed(STREAMS["text"]) == []
    assert decoder.is_complete


# --- writing


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("form", FORMS)
def test_our_own_streams_need_no_envelopes(name: str, form: Form) -> None:
    """With envelopes for foreign sealed state, they are written as without."""
    _, events = decoded(STREAMS[name])
    enveloping = DIALECT.stream_encoder(form=form)
    again = b"".join([*map(enveloping.feed, events), enveloping.close()])
    assert again == encoded(events, form)[1]


@pytest.mark.parametrize("form", FORMS)
def test_deltas_are_written_immediately(form: Form) -> None:
    """Each text delta is written as a chunk at once; the last chunk has the finish."""
    encoder = StreamEncoder(form=form)
    assert encoder.feed(START) == b""
    pieces = [encoder.feed(PartStart(0, Text("")))]
    pieces += [encoder.feed(PartDelta(0, text)) for text in ("Hel", "lo")]
    pieces += [encoder.feed(event) for event in (PartStop(0), *END)]
    assert [bool(piece) for piece in pieces] == [False, True, True, False, False, False, True]
    head = {"modelVersion": "gpt", "responseId": "chatcmpl-1"}
    chunks = sent(b"".join(pieces), form)
    texts = [{"candidates": [{"content": {"parts": [{"text": t}], "role": "model"}}], **head}
             for t in ("Hel", "lo")]  # fmt: skip
    assert chunks[:2] == texts
    assert chunks[2] == {
        "candidates": [
            {
                "content": {"parts": [{"text": ""}], "role": "model"},
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        **head,
    }
    assert encoder.close() == b""


def test_foreign_thinking_is_shown() -> None:
    """Foreign thinking is written as thoughts, without the signature."""
    parts, _, losses = elsewhere(
        PartStart(0, Thinking("", signature="")),
        PartDelta(0, "Hm"),
        PartDelta(0, "."),
        PartDelta(0, signature="sealed"),
        PartStop(0),
        PartStart(1, Thinking("", "sealed", "redacted")),
        PartStop(1),
        PartStart(2, Thinking("Whole.", signature="sealed")),
        PartStop(2),
    )
    assert parts == [{"text": t, "thought": True} for t in ("Hm", ".", "Whole.")]
    assert len(losses) == 3


def test_calls_are_written_whole() -> None:
    """Interleaved calls are written whole, as soon as they are complete (W87), or not at all."""
    parts, last, losses = elsewhere(
        PartStart(0, ToolCall("a", "one", raw="")),
        PartStart(1, ToolCall("b", "two", raw="")),
        PartDelta(0, '{"x":'),
        PartDelta(1, "{"),
        PartDelta(0, " 1}"),
        PartStop(0),
        PartStart(2, ToolCall("c", "three", input={"y": []})),
        PartStop(2, ToolCall("c", "three", input={"y": [2]})),
        PartStart(3, ToolCall("d", "four", raw="text", kind="custom")),
    )
    assert [part["functionCall"] for part in parts] == [
        {"name": "one", "id": "a", "args": {"x": 1}},
        {"name": "three", "id": "c", "args": {"y": [2]}},
        {"name": "four", "id": "d", "args": {"input": "text"}},
    ]
    assert last["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert losses == [LEFT_OUT]


def test_call_deltas_are_collected() -> None:
    """Deltas give one whole call each, which is written before the next text."""
    parts, _, losses = elsewhere(
        ToolCallDelta(0, "a", "one", "{"),
        ToolCallDelta(1, "b", "two", '{"x"'),
        ToolCallDelta(0, None, None, "}"),
        ToolCallDelta(1, None, None, ": 1}"),
        PartStart(5, Text("So.")),
        ToolCallDelta(1, None, None, "late"),
        ToolCallDelta(1),
        ToolCallDelta(2, "c", "three"),
    )
    assert parts == [
        {"functionCall": {"name": "one", "id": "a", "args": {}}},
        {"functionCall": {"name": "two", "id": "b", "args": {"x": 1}}},
        {"text": "So."},
        {"functionCall": {"name": "three", "id": "c"}},
    ]
    assert losses == ["content added to a call after its end is left out"]


def test_citations_are_written_at_the_end() -> None:
    """Citations from start, deltas and stop are written as grounding metadata."""
    cited = [Citation(kind="url", url=f"https://example.com/{n}", end=n) for n in range(3)]
    _, last, losses = elsewhere(
        PartStart(0, Text("It ", (cited[0],))),
        PartDelta(0, "is", citations=(cited[1],)),
        PartStop(0, Text("It is so.", tuple(cited))),
    )
    grounding = last["candidates"][0]["groundingMetadata"]
    assert [c["web"]["uri"] for c in grounding["groundingChunks"]] == [c.url for c in cited]
    assert losses == []


def test_part_stop_content_is_written() -> None:
    """Content in a part's stop that its deltas didn't have is written, and nothing twice."""
    parts, _, losses = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "Hel"),
        PartStop(0, Text("Hello")),
        PartStop(1, Thinking("Hm.")),
        PartDelta(2, "Never announced."),
    )
    assert parts == [{"text": "Hel"}, {"text": "lo"}, {"text": "Hm.", "thought": True},
                     {"text": "Never announced."}]  # fmt: skip
    assert losses == []


def test_unsupported_parts_are_losses() -> None:
    """Refusals, foreign tools, file ids and unknown events are losses."""
    parts, _, losses = elsewhere(
        PartStart(0, Refusal("")),
        PartDelta(0, "No."),
        PartStop(0),
        PartStart(1, ServerToolCall("web_search", "s", {})),
        PartStop(1),
        PartStart(2, Opaque("openai-chat", {"x": 1})),
        PartStop(2),
        PartStart(3, Image(file_id="file-1")),
        PartStop(3),
        PartStart(4, Audio(data="AAE=", mime="audio/wav")),
        PartDelta(4, data="AgM="),
        OpaqueEvent("openai-chat", {}),
        OpaqueEvent("openai-chat", {}),
        ChoiceFinish(FinishReason.STOP, logprobs={"content": []}),
        ChoiceFinish(FinishReason.STOP, logprobs={"content": []}),
    )
    assert parts == [
        {"text": "No."},
        {"inlineData": {"mimeType": "audio/wav", "data": "AAECAw=="}},
    ]
    assert len(losses) == 5


def test_last_finish_reason_counts() -> None:
    """The last finish reason is written; a choice without one gets `OTHER`."""
    _, stream = encoded([
        START, PartDelta(0, "a"), PartDelta(0, "b", choice=1),
        ChoiceFinish(FinishReason.STOP), ChoiceFinish(FinishReason.LENGTH), ResponseEnd(),
    ])  # fmt: skip
    last = sent(stream)[-1]
    assert [c["finishReason"] for c in last["candidates"]] == ["MAX_TOKENS", "OTHER"]
    assert [c["index"] for c in last["candidates"]] == [0, 1]


@pytest.mark.parametrize("form", FORMS)
def test_truncated_events_are_written_as_an_error(form: Form) -> None:
    """Without a `ResponseEnd` the stream ends in an error (G1); nothing is written after an end."""
    for events in ((), (START,), (START, PartDelta(0, "a")), (START, *END[:2])):
        encoder, stream = encoded(events, form)
        error = sent(stream, form)[-1]["error"]
        assert (error["code"], error["status"]) == (500, "INTERNAL")
        assert b"finishReason" not in stream
    encoder, stream = encoded([START, *END, PartDelta(0, "late"), PartDelta(0, "later")], form)
    assert "error" not in sent(stream, form)[-1]
    assert len(encoder.losses) == 1


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (StreamError("x", "overloaded_error", 529), 529, "INTERNAL"),
        (StreamError("x", "rate_limit_error", 429), 429, "RESOURCE_EXHAUSTED"),
        (StreamError("x", "PERMISSION_DENIED"), 403, "PERMISSION_DENIED"),
        (StreamError("x", "odd", 7), 500, "INTERNAL"),
        (StreamError(""), 500, "INTERNAL"),
    ],
)
def test_foreign_errors_are_written_in_googles_format(
    error: StreamError, code: int, name: str
) -> None:
    """By status, or by name if it is one of Google's."""
    (chunk,) = sent(encoded([error])[1])
    assert chunk == {"error": {"code": code, "message": error.message, "status": name}}


def test_line_separators_are_escaped() -> None:
    """Google's SDK treats Unicode line separators as line ends, so they are escaped."""
    text = "a\u2028b\u2029c\x85d\x0b\x0c\x1ce"
    _, stream = encoded([START, PartDelta(0, text), *END])
    assert len(stream.decode().splitlines()) == len(stream.split(b"\n")) - 1
    assert decoded(stream)[0].response.text == text


def test_many_chunks_are_read_in_linear_time() -> None:
    """Accumulated content isn't copied for each chunk."""
    decoder = DIALECT.stream_decoder()
    unlike = [
        written([{**chunk({"text": "a"}, citationMetadata={"citationSources": [{"startIndex": n}]},
                          **{f"odd{n}": n}), f"strange{n}": n}])
        for n in range(3000)
    ]  # fmt: skip
    counts = [len(decoder.feed(stream)) for stream in unlike]
    assert set(counts[1:]) == {1}
    assert len(decoder.response.message.text) == 3000
