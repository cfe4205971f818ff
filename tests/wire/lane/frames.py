"""Streams of every dialect, made frame by frame, with runs of deltas and near repetitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

Frame = dict[str, Any]
Make = Callable[[str], Frame]


def _chat(delta: Frame, finish: str | None = None, **more: Any) -> Frame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **more}


def _detail(text: str, **more: Any) -> Frame:
    detail = {"type": "reasoning.text", "text": text, "index": 0, **more}
    return {"reasoning": text, "reasoning_details": [detail]}


def _call(**fields: Any) -> Frame:
    return {"tool_calls": [{"index": 0, **fields}]}


CHAT: dict[str, Make] = {
    "text": lambda t: _chat({"content": t}),
    "text among nulls": lambda t: _chat({"role": None, "content": t, "tool_calls": None}),
    "other choice": lambda t: _chat({"content": t}) | {"choices": [
        {"index": 1, "delta": {"content": t}, "finish_reason": None}]},
    "two choices": lambda t: _chat({}) | {"choices": [
        {"index": n, "delta": {"content": t}, "finish_reason": None} for n in (0, 1)]},
    "odd index": lambda t: _chat({}) | {"choices": [
        {"index": False, "delta": {"content": t}, "finish_reason": None}]},
    "thinking": lambda t: _chat({"reasoning_content": t}),
    "thinking twice": lambda t: _chat({"reasoning_content": t, "reasoning": t}),
    "thinking again": lambda t: _chat({"reasoning": t, "reasoning_content": t}),
    "thinking twice, not alike": lambda t: _chat({"reasoning_content": t, "reasoning": t + "."}),
    "detail": lambda t: _chat(_detail(t)),
    "signed detail": lambda t: _chat(_detail(t, signature="s")),
    "refusal": lambda t: _chat({"refusal": t}),
    "call": lambda t: _chat(_call(function={"arguments": t})),
    "second call": lambda t: _chat(_call(index=1, function={"arguments": t})),
    "call with id": lambda t: _chat(_call(id="c1", function={"name": "f", "arguments": t})),
    "call elsewhere": lambda t: _chat({"tool_calls": [{"function": {"arguments": t}}]}),
    "call with more": lambda t: _chat(_call(function={"arguments": t}, odd=1)),
    "new call": lambda t: _chat(_call(id=f"c{len(t)}", type="function",
                                      function={"name": "f", "arguments": "{}"})),
    "calls": lambda t: _chat({"tool_calls": [{"index": n, "function": {"arguments": t}}
                                             for n in (0, 1)]}),
    "text and call": lambda t: _chat({"content": t, **_call(function={"arguments": t})}),
    "list": lambda t: _chat({"content": [{"type": "text", "text": t}]}),
    "other model": lambda t: _chat({"content": t}, model="other"),
    "usage": lambda t: _chat({"content": t}, usage={"prompt_tokens": len(t)}),
    "odd field": lambda t: _chat({"content": t, "odd": t}, odd=t),
    "error": lambda t: {"error": {"message": t}},
    "finish": lambda t: _chat({"content": t}, "stop"),
}  # fmt: skip


def _block_delta(kind: str, index: Any = 0, **fields: Any) -> Frame:
    delta = {"type": kind, **fields}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _block(kind: str, index: int, **fields: Any) -> Frame:
    block = {"type": kind, **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


ANTHROPIC: dict[str, Make] = {
    "text": lambda t: _block_delta("text_delta", text=t),
    "thinking": lambda t: _block_delta("thinking_delta", 1, thinking=t),
    "call": lambda t: _block_delta("input_json_delta", 2, partial_json=t),
    "second call": lambda t: _block_delta("input_json_delta", 4, partial_json=t),
    "server call": lambda t: _block_delta("input_json_delta", 3, partial_json=t),
    "wrong block": lambda t: _block_delta("text_delta", 1, text=t),
    "no block": lambda t: _block_delta("text_delta", 9, text=t),
    "no index": lambda t: _block_delta("text_delta", None, text=t),
    "odd index": lambda t: _block_delta("text_delta", False, text=t),
    "signature": lambda t: _block_delta("signature_delta", 1, signature=t),
    "citation": lambda t: _block_delta("citations_delta", citation={"cited_text": t}),
    "odd piece": lambda t: _block_delta("text_delta", text=t, odd=t),
    "odd event": lambda t: _block_delta("text_delta", text=t) | {"odd": t},
    "ping": lambda _: {"type": "ping"},
    "stop": lambda t: {"type": "content_block_stop", "index": len(t) % 4},
    "start": lambda t: _block("text", len(t) % 4, text=""),
    "end": lambda _: {"type": "message_stop"},
}


def _of_item(kind: str, index: Any = 0, **fields: Any) -> Frame:
    return {"type": f"response.{kind}", "item_id": f"i%d{index}", "output_index": index, **fields}


def _item(index: int, kind: str, **fields: Any) -> Frame:
    item = {"id": f"i%d{index}", "type": kind, **fields}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


RESPONSES: dict[str, Make] = {
    "text": lambda t: _of_item("output_text.delta", content_index=0, delta=t, logprobs=[]),
    "text under new ids": lambda t: _of_item("output_text.delta", content_index=0, delta=t)
        | {"item_id": f"i{len(t)}{t[-1:].isalnum()}"},
    "more text": lambda t: _of_item("output_text.delta", content_index=1, delta=t),
    "probable": lambda t: _of_item("output_text.delta", content_index=0, delta=t, logprobs=[1]),
    "thinking": lambda t: _of_item("reasoning_summary_text.delta", 1, summary_index=0, delta=t),
    "more thinking": lambda t: _of_item("reasoning_summary_text.delta", 1, summary_index=1,
                                        delta=t),
    "reasoning": lambda t: _of_item("reasoning_text.delta", 1, content_index=0, delta=t),
    "summary part": lambda t: _of_item("reasoning_summary_part.added", 1, summary_index=len(t) % 3,
                                       part={"type": "summary_text", "text": ""}),
    "summary done": lambda t: _of_item("reasoning_summary_part.done", 1, summary_index=len(t) % 3,
                                       part={"type": "summary_text", "text": t}),
    "call": lambda t: _of_item("function_call_arguments.delta", 2, delta=t),
    "second call": lambda t: _of_item("function_call_arguments.delta", 4, delta=t),
    "call done": lambda t: _of_item("function_call_arguments.done", 2 + 2 * (len(t) % 2),
                                    arguments=t),
    "code": lambda t: _of_item("code_interpreter_call_code.delta", 3, delta=t),
    "wrong item": lambda t: _of_item("output_text.delta", 2, content_index=0, delta=t),
    "no item": lambda t: _of_item("output_text.delta", 9, content_index=0, delta=t),
    "no place": lambda t: {"type": "response.output_text.delta", "delta": t},
    "odd field": lambda t: _of_item("output_text.delta", content_index=0, delta=t, odd=t),
    "refusal": lambda t: _of_item("refusal.delta", content_index=2, delta=t),
    "item": lambda t: _item(len(t) % 4, "message", role="assistant", content=[]),
    "done": lambda t: _item(len(t) % 4, "message", role="assistant", content=[
        {"type": "output_text", "text": t}]) | {"type": "response.output_item.done"},
    "ping": lambda _: {"type": "keepalive"},
    "end": lambda _: {"type": "response.completed", "response": {"id": "r1", "model": "m"}},
}  # fmt: skip


def _chunk(*parts: Any, usage: int | None = None, **fields: Any) -> Frame:
    candidate = {"content": {"parts": [*parts], "role": "model"}, "index": 0, **fields}
    body: Frame = {"candidates": [candidate]}
    if usage is not None:
        detail = [{"modality": "TEXT", "tokenCount": 8}]
        counts = {
            "promptTokenCount": 8,
            "candidatesTokenCount": usage,
            "totalTokenCount": 8 + usage,
        }
        body["usageMetadata"] = {**counts, "promptTokensDetails": detail}
    return {**body, "modelVersion": "g", "responseId": "r1"}


GEMINI: dict[str, Make] = {
    "text": lambda t: _chunk({"text": t}),
    "counted": lambda t: _chunk({"text": t}, usage=len(t) * 7),
    "counted thinking": lambda t: _chunk({"text": t, "thought": True}, usage=len(t) * 7),
    "odd count": lambda t: _chunk({"text": t}) | {"usageMetadata": {"odd": "\\u00e9", "n": 1.5}},
    "thinking": lambda t: _chunk({"text": t, "thought": True}),
    "no thinking": lambda t: _chunk({"text": t, "thought": False}),
    "signed": lambda t: _chunk({"text": t, "thoughtSignature": "c2ln"}),
    "two parts": lambda t: _chunk({"text": t}, {"text": t}),
    "call": lambda t: _chunk({"functionCall": {"name": "f", "args": {"a": t}}}),
    "code": lambda t: _chunk({"executableCode": {"language": "PYTHON", "code": t}}),
    "other candidate": lambda t: _chunk({"text": t}, index=1),
    "odd index": lambda t: _chunk({"text": t}, index=False),
    "odd field": lambda t: _chunk({"text": t}, odd=t),
    "probable": lambda t: _chunk({"text": t}, logprobsResult={"chosenCandidates": [t]}),
    "other model": lambda t: _chunk({"text": t}) | {"modelVersion": "h"},
    "finish": lambda t: _chunk({"text": t}, finishReason="STOP"),
    "error": lambda t: {"error": {"code": 500, "message": t}},
}


def _line(message: Any, **fields: Any) -> Frame:
    head = {"model": "l", "created_at": "2025-01-01T00:00:00.5Z", "message": message}
    return {**head, "done": False, **fields}


OLLAMA: dict[str, Make] = {
    "text": lambda t: _line({"role": "assistant", "content": t}),
    "thinking": lambda t: _line({"role": "assistant", "content": "", "thinking": t}),
    "both": lambda t: _line({"role": "assistant", "content": t, "thinking": t}),
    "timed": lambda t: _line({"role": "assistant", "content": t}, created_at=f"at {len(t)}"),
    "odd time": lambda t: _line({"role": "assistant", "content": t}, created_at=t),
    "no text": lambda _: _line({"role": "assistant", "content": 5}),
    "odd field": lambda t: _line({"role": "assistant", "content": t, "odd": t}),
    "odd line": lambda t: _line({"role": "assistant", "content": t}, odd=t),
    "probable": lambda t: _line({"role": "assistant", "content": t}, logprobs=[1]),
    "call": lambda t: _line({"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "f", "arguments": {"a": t}}}]}),
    "error": lambda t: {"error": t},
    "end": lambda t: _line({"role": "assistant", "content": t}, done=True, eval_count=3),
}  # fmt: skip

FORMS: dict[str, dict[str, Make]] = {
    "openai-chat": CHAT,
    "anthropic": ANTHROPIC,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}
PLAIN: dict[str, tuple[str, ...]] = {
    "openai-chat": ("text", "text among nulls", "thinking", "thinking twice", "thinking again",
                    "detail", "call", "second call"),
    "anthropic": ("text", "thinking", "call", "second call"),
    "openai-responses": ("text", "text under new ids", "more text", "thinking", "more thinking",
                         "reasoning", "call", "second call", "code"),
    "gemini": ("text", "counted", "thinking", "counted thinking"),
    "ollama": ("text", "thinking", "timed"),
}  # fmt: skip
"""The forms that repeat."""
_MESSAGE = {"id": "m1", "type": "message", "role": "assistant", "model": "c", "content": [],
            "usage": {"input_tokens": 3, "output_tokens": 1}}  # fmt: skip
BEGINNINGS: dict[str, list[Frame]] = {
    "openai-chat": [
        _chat({"role": "assistant", "content": ""}),
        _chat(_call(id="c1", type="function", function={"name": "f", "arguments": ""})),
        _chat(_call(index=1, id="c2", type="function", function={"name": "g", "arguments": ""})),
    ],
    "anthropic": [
        {"type": "message_start", "message": _MESSAGE},
        _block("text", 0, text=""),
        _block("thinking", 1, thinking=""),
        _block("tool_use", 2, id="t1", name="f", input={}),
        _block("server_tool_use", 3, id="s1", name="web_search", input={}),
        _block("tool_use", 4, id="t2", name="g", input={}),
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r1", "model": "m", "output": []}},
        _item(0, "message", role="assistant", content=[], status="in_progress"),
        _item(1, "reasoning", summary=[]),
        _item(2, "function_call", call_id="c1", name="f", arguments=""),
        _item(3, "code_interpreter_call", code="", container_id="x"),
        _item(4, "function_call", call_id="c2", name="g", arguments=""),
    ],
    "gemini": [],
    "ollama": [],
}
ENDINGS: dict[str, list[Frame]] = {
    "openai-chat": [_chat({}, "stop"), _chat({}) | {"choices": [], "usage": {"prompt_tokens": 1}}],
    "anthropic": [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ],
    "openai-responses": [
        {"type": "response.completed", "response": {
            "id": "r1", "model": "m", "usage": {"input_tokens": 3, "output_tokens": 4}}}
    ],
    "gemini": [_chunk({"text": "."}, usage=99, finishReason="STOP")],
    "ollama": [_line({"role": "assistant", "content": ""}, done=True, done_reason="stop")],
}  # fmt: skip
_NUMBERED = {"openai-responses": "sequence_number"}


class Style:
    """How a server formats its frames."""

    def __init__(self, dialect: str, **ways: Any) -> None:
        self.dialect = dialect
        self.is_ascii: bool = ways.get("is_ascii", False)
        self.is_wide: bool = ways.get("is_wide", False)
        self.end: str = ways.get("end", "\n")
        self.is_padded: bool = ways.get("is_padded", False)
        self.is_spaced: bool = ways.get("is_spaced", False)
        self.is_named: bool = ways.get("is_named", dialect in ("anthropic", "openai-responses"))
        self.order: int = ways.get("order", 0)
        """Which order the fields of all objects have; 0: as given."""
        self.number = 0

    def frame(self, body: Frame) -> bytes:
        """One frame, in bytes."""
        self.number += 1
        if key := _NUMBERED.get(self.dialect):
            first, *rest = body.items()
            body = dict([first, (key, self.number), *rest])
        if self.is_padded:
            body = {**body, "obfuscation": "abcdefghij"[: self.number % 10]}
        if self.order:
            body = reordered(body, self.order)
        separators = (", ", ": ") if self.is_wide else (",", ":")
        text = json.dumps(body, ensure_ascii=self.is_ascii, separators=separators)
        if self.is_spaced:  # Anthropic pads its frames so
            text = text[:-1] + " " * (self.number * 7 % 15) + "}"
        raw = text.encode("utf-8", "surrogatepass")
        end = self.end.encode()
        if self.dialect == "ollama":
            return raw + end
        kind = str(body.get("type") or "message") if self.is_named else ""
        name = kind.encode("utf-8", "surrogatepass")
        head = b"event: " + name + end if name else b""
        return head + b"data: " + raw + end + end


def reordered(value: Any, order: int) -> Any:
    """The value with the fields of all objects in another order, always the same for one number."""
    if isinstance(value, list):
        return [reordered(each, order) for each in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(value, key=lambda key: crc32(f"{order} {key}".encode("utf-8", "surrogatepass")))
    return {key: reordered(value[key], order) for key in keys}


def styles(dialect: str) -> st.SearchStrategy[Style]:
    """Random ways to format frames."""
    flag = st.booleans()
    return st.builds(
        lambda **ways: Style(dialect, **ways), is_ascii=flag, is_wide=flag,
        end=st.sampled_from(["\n", "\n", "\r\n"]), is_padded=flag, is_spaced=flag, is_named=flag,
        order=st.sampled_from([0, 0, 1, 2, 3]),
    )  # fmt: skip


TEXTS = st.one_of(
    st.sampled_from(["a", " b", "", '"', "\\", "\n", "é", "\u2028", "\x00", "\x7f", "\U0001f600",
                     '","content":"', "\ud800", "\udc00\ud800", '{"', '": 1', "}", "data: x\n\n",
                     "text", "+", "\\u0041", "\x85"]),
    st.text(max_size=8),
    st.text(st.characters(), max_size=4),
)  # fmt: skip
_INSERTED = [b'"', b"\\", b"\n", b"\r", b"\r\n", b"\x00", b"\xff", b"\xc3", b"{", b"}", b" ", b"0",
             b'","content":"x', b',"delta":"y"', b": ping\n\n", b"data: [DONE]\n\n", b"\n\n",
             b"\xef\xbb\xbf", b"id: 1\n", b"\xe2\x80\xa8"]  # fmt: skip


_AGAIN = [(b"delta", b'"x"'), (b"index", b"1"), (b"choices", b"[]"), (b"obfuscation", b'"y"'),
          (b"sequence_number", b"5"), (b"usageMetadata", b'{"promptTokenCount":5}'),
          (b"created_at", b'"later"'), (b"message", b"{}"), (b"type", b'"ping"'),
          (b"content", b'"z"'), (b"text", b'"z"')]  # fmt: skip


@st.composite
def streams(draw: Any, dialect: str) -> bytes:
    """A stream of runs, complete or broken, in a random style."""
    style = draw(styles(dialect))
    forms = FORMS[dialect]
    names = st.one_of(st.sampled_from(PLAIN[dialect]), st.sampled_from(sorted(forms)))
    runs = draw(st.lists(st.tuples(names, st.lists(TEXTS, min_size=1, max_size=6)), max_size=6))
    frames = [style.frame(body) for body in BEGINNINGS[dialect]]
    for name, texts in runs:
        frames += [style.frame(forms[name](text)) for text in texts]
    if draw(st.booleans()):
        frames += [style.frame(body) for body in ENDINGS[dialect]]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        _twice(draw, frames)
    stream = b"".join(frames)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2, 3]))):
        at = draw(st.integers(0, len(stream)))
        left = draw(st.sampled_from([0, 0, 1, 2, 9]))
        stream = stream[:at] + draw(st.sampled_from(_INSERTED)) + stream[at + left :]
    return stream


def _twice(draw: Any, frames: list[bytes]) -> None:
    """A frame with a duplicate field, or with a text under another key."""
    if not frames:
        return
    place = draw(st.integers(0, len(frames) - 1))
    frame = frames[place]
    at = frame.rfind(b"}")
    key, value = draw(st.sampled_from(_AGAIN))
    if at > 0:
        frames[place] = frame[:at] + b',"' + key + b'":' + value + frame[at:]


def cut(stream: bytes, places: list[int]) -> Iterator[bytes]:
    """The stream in pieces, cut at these positions."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    for start, end in pairwise(edges):
        yield stream[start:end]
