"""Test streams: plain bodies and the equivalent chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.stream_chunks import Form
from dragoman.wire.gemini.stream_encoder import StreamEncoder
from dragoman.wire.stream_encoding import HELD_BACK, NO_USAGE
from tests.wire import streams
from tests.wire.streams import Failure, Streams, decoding, encoding

Chunk = dict[str, Any]

USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 30, "totalTokenCount": 60,
         "cachedContentTokenCount": 4, "thoughtsTokenCount": 21,
         "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
         "serviceTier": "standard"}  # fmt: skip


def candidate(*parts: Any, **fields: Any) -> Chunk:
    """A candidate of a plain body."""
    return {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP",
            "index": 0, **fields}  # fmt: skip


def plain(*candidates: Chunk, **fields: Any) -> Chunk:
    """A plain body."""
    return {
        "candidates": list(candidates),
        "usageMetadata": USAGE,
        "modelVersion": "gemini-x",
        "responseId": "abc",
        **fields,
    }


def _call(name: str, **fields: Any) -> Chunk:
    return {"functionCall": {"name": name, **fields}}


GROUNDED = {
    "searchEntryPoint": {"renderedContent": "<div/>"},
    "groundingChunks": [{"web": {"uri": "https://example.com/a", "title": "A"}},
                        {"web": {"uri": "https://example.com/b", "title": "B", "odd": 1}}],
    "groundingSupports": [
        {"segment": {"endIndex": 6, "text": "It is "}, "groundingChunkIndices": [0, 1]},
        {"segment": {"startIndex": 6, "endIndex": 9, "text": "so."}, "groundingChunkIndices": [1],
         "confidenceScores": [0.5]},
    ],
    "webSearchQueries": ["is it so"],
}  # fmt: skip

BODIES: dict[str, Chunk] = {
    "text": plain(candidate({"text": "Grüezi, 世界 \U0001f30d\nand\r\n\u2028so on"})),
    "nothing": plain(candidate(content={"role": "model"})),
    "no content": plain({"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0,
                         "finishMessage": "Malformed function call: x"}),
    "thinking": plain(candidate(
        {"text": "Let me see. It can't be six.", "thought": True},
        {"text": "Seven.", "thoughtSignature": "c2lnbmVk"},
        {"text": " Or eight."},
        {"text": "", "thoughtSignature": "bG9uZQ=="},
    )),
    "signed thought": plain(candidate(
        {"text": "Hm, ", "thought": True},
        {"text": "hm.", "thought": True, "thoughtSignature": "c2lnbmVk"},
        {"text": "More.", "thought": True},
        {"thoughtSignature": "bG9uZQ=="},
        {"text": "Yes."},
    )),
    "parallel calls": plain(candidate(
        {"text": "Both:"},
        {**_call("weather", args={"city": "Basel"}, id="c1"), "thoughtSignature": "c2lnbmVk"},
        _call("weather", args={"city": "Bern", "days": [1, {"b": None}]}, id="c2"),
        _call("now"),
        _call("now", args={}),
        finishMessage="Model generated function call(s).",
    )),
    "one id twice": plain(candidate(
        _call("weather", args={"city": "Basel"}, id="c1"),
        _call("weather", args={"city": "Bern"}, id="c1"),
    )),
    "code": plain(candidate(
        {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)\n"},
         "thoughtSignature": "c2lnbmVk"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}, "id": "t1"}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"x": "<a>"}, "id": "t1"}},
        {"text": "It is 42."},
    )),
    "media": plain(candidate(
        {"text": "Here:"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/v"}},
    )),
    "grounding": plain(candidate(
        {"text": "It is so."},
        groundingMetadata=GROUNDED,
        urlContextMetadata={"urlMetadata": [{"retrievedUrl": "https://example.com"}]},
        safetyRatings=[{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        avgLogprobs=-0.25,
    )),
    "quotes": plain(candidate(
        {"text": "So it is, and so it was."},
        citationMetadata={"citationSources": [
            {"startIndex": 0, "endIndex": 9, "uri": "https://example.com/a", "license": ""},
            {"startIndex": 11, "endIndex": 20, "uri": "https://example.com/b"},
        ]},
    )),
    "unknown": plain(
        candidate(
            {"telepathy": {"mood": "good"}},
            {"text": "Odd.", "odd": 1},
            {"text": "Not odd."},
            strange=[None],
        ),
        createTime="2026-01-02T03:04:05.678900Z",
        modelStatus={"modelStage": "PREVIEW"},
    ),
    "snake case": {
        "candidates": [{
            "content": {"parts": [
                {"text": "Hm.", "thought": True, "thought_signature": "c2lnbmVk"},
                {"function_call": {"name": "now", "args": {}}},
            ], "role": "model"},
            "finish_reason": "STOP",
        }],
        "usage_metadata": {"prompt_token_count": 3, "total_token_count": 3},
        "model_version": "gemini-x",
        "response_id": "abc",
    },
    "several candidates": plain(
        candidate({"text": "One answer."}),
        candidate(
            {"text": "Another."}, _call("now", args={}), index=1, finishReason="MAX_TOKENS"
        ),
    ),
    "cut off": plain(candidate({"text": "1, 2, "}, finishReason="MAX_TOKENS")),
    "filtered": plain(candidate({"text": "1, 2, "}, finishReason="SAFETY")),
    "blocked": {
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3},
        "modelVersion": "gemini-x",
    },
}  # fmt: skip


def _pieces(part: Any) -> Iterator[Any]:
    """A part split as the provider splits it: only plain texts are split."""
    is_text = isinstance(part, dict) and part.keys() <= {"text", "thought"} and part
    for at in range(0, len(part["text"]), 5) if is_text else ():
        yield {**part, "text": part["text"][at : at + 5]}
    if not is_text:
        yield part


def chunks_of(body: Chunk) -> list[Chunk]:
    """The chunks that are equivalent to a plain body."""
    head = {k: v for k, v in body.items() if k not in {"candidates", "usageMetadata"}}
    chunks: list[Chunk] = []
    lasts: list[Any] = []
    usage = body.get("usageMetadata")
    for wire in body.get("candidates", ()):
        place = {"index": wire["index"]} if "index" in wire else {}
        content = wire.get("content", {})
        for part in content.get("parts", ()):
            for piece in _pieces(part):
                said = {"content": {**content, "parts": [piece]}, **place}
                spent = {} if usage is None else {"usageMetadata": {**usage, "totalTokenCount": 1}}
                chunks.append({"candidates": [said], **spent, **head})
        lasts.append(
            {**wire, "content": {"parts": [{"text": ""}], "role": "model"}} if content else wire
        )
    last = {**body, "candidates": lasts} if lasts else body
    return [*chunks, last]


def written(chunks: Iterable[Any], form: Form = "sse") -> bytes:
    """The chunks as bytes, in the provider's format."""
    texts = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    if form == "array":
        pretty = [json.dumps(json.loads(text), ensure_ascii=False, indent=2) for text in texts]
        return ("[" + "\n,\r\n".join(pretty) + "\n]").encode()
    return "".join(f"data: {text}\r\n\r\n" for text in texts).encode()


FRAMES = {name: chunks_of(body) for name, body in BODIES.items()}
STREAMS = {name: written(frames) for name, frames in FRAMES.items()}
ARRAYS = {name: written(frames, "array") for name, frames in FRAMES.items()}

decoded = decoding(DIALECT)


def encoded(events: Iterable[Event], form: Form = "sse") -> tuple[StreamEncoder, bytes]:
    """Encodes the events; returns the encoder and the bytes."""
    encoder = StreamEncoder(form=form)  # without envelopes for foreign sealed state
    return encoder, encoding(lambda: encoder)(events)[1]


def sent(stream: bytes, form: Form = "sse") -> list[Chunk]:
    """The chunks of an encoded stream; fails if the stream is malformed."""
    if form == "array":
        found: list[Chunk] = json.loads(stream)
        return found
    frames = stream.decode().split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def said(response: Response) -> Chunk:
    """The response as data, without generated ids, and with arguments compared by value."""
    document = streams.said(response, is_by_value=True)
    _sort_spellings(document)
    return document


def _sort_spellings(document: Any) -> None:
    """Sorts the recorded field names, since their order has no meaning."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if key == "names":
            value.sort()
        elif isinstance(value, (dict, list)):
            _sort_spellings(value)


# --- for the tests of all dialects


def _ended(stream: bytes, *, may_be_odd: bool = False, form: Form = "sse") -> str:
    last = sent(stream, form)[-1]
    if "error" not in last:
        return "complete"
    assert may_be_odd or (last["error"]["code"] and b"finish" not in stream)
    return "failed"


_ERROR = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE",
                    "details": [{"@type": "x", "y": 1}]}}  # fmt: skip


def _overloaded(form: Form) -> Failure:
    stream = written([*FRAMES["text"][:2], _ERROR, *FRAMES["text"][2:]], form)
    again = json.dumps(_ERROR, separators=(",", ":")).encode()
    return Failure(stream, "Overloaded", "UNAVAILABLE", 503, [again], ["usage", "events"])


MALFORMED = [
    b'{\n  "error": {\n    "code": 400,\n    "message": "x"\n  }\n}\n',
    b'[{"error": {"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}}]',
    b'data: {"error": "boom"}\n\n',
    b'data: [{"error": {"code": "x"}}]\n\n',
    b'data: {"error": {"status": 7, "code": 9e3}, "candidates": []}\n\n',
]
_SSE = Streams(
    dialect=DIALECT,
    bodies=BODIES,
    frames=FRAMES,
    written=written,
    encoder=StreamEncoder,
    ended=_ended,
    said=said,
    last=[b'"finishReason"'],
    failures={"overloaded": _overloaded("sse")}
    | {f"malformed {number}": Failure(body) for number, body in enumerate(MALFORMED)},
    in_pieces=(
        chunks_of(plain(candidate({"text": "abcdefghijk"}))),
        "ResponseStart PartStart PartDelta PartDelta UsageUpdate PartStop ChoiceFinish ResponseEnd",
        ["abcde", "fghij", "k"],
    ),
    words=["STOP", "model", "$.a", "image/png", "\ud800"],
    keys=["text", "index", "parts", "functionCall", "name", "args", "willContinue", "partialArgs",
          "jsonPath", "stringValue", "thoughtSignature", "error", "groundingMetadata",
          "citationSources", "inlineData", "thought", "x"],
    lost_when_cut=[HELD_BACK, NO_USAGE],
)  # fmt: skip
TABLE = {
    "gemini": _SSE,
    "gemini array": replace(
        _SSE,
        written=partial(written, form="array"),
        encoder=partial(StreamEncoder, form="array"),
        ended=partial(_ended, form="array"),
        failures={"overloaded": _overloaded("array")},
        in_pieces=None,
    ),
}
