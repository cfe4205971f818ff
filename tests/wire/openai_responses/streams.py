"""Test streams: plain bodies and the equivalent stream events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.model.events import Event
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from tests.wire import streams
from tests.wire.openai_responses.stream_grammar import check_stream
from tests.wire.streams import MALFORMED, Failure, Streams, decoding, encoding

Wire = dict[str, Any]

USAGE = {
    "input_tokens": 13,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 7},
    "total_tokens": 43,
}


def plain(*output: Any, **fields: Any) -> Wire:
    """A plain body."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1760000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-x",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        "metadata": {},
        **fields,
    }


def message(*content: Any, id: str = "msg_1", **fields: Any) -> Wire:
    """A message item."""
    return {"id": id, "type": "message", "status": "completed", "role": "assistant",
            "content": list(content), **fields}  # fmt: skip


def text(words: str, *annotations: Any, **fields: Any) -> Wire:
    """A text part of a message."""
    return {"type": "output_text", "text": words, "annotations": list(annotations), **fields}


def call(number: str, name: str, arguments: str, **fields: Any) -> Wire:
    """A function call."""
    return {"id": f"fc_{number}", "type": "function_call", "status": "completed", "name": name,
            "call_id": f"call_{number}", "arguments": arguments, **fields}  # fmt: skip


SOURCE = {"type": "url_citation", "start_index": 0, "end_index": 5, "title": "A",
          "url": "https://example.com/a"}  # fmt: skip
STRANGE_SOURCE = {"start_index": 0}
LOGPROBS = [
    {"token": piece, "logprob": -0.5, "bytes": [65], "top_logprobs": []} for piece in ("Se", "ven")
]
SUMMARY = {"type": "summary_text", "text": "**Looking** at it."}

BODIES: dict[str, Wire] = {
    "text": plain(message(text("Grüezi, 世界 \U0001f30d\nand\r\n\u2028so on", logprobs=[]))),
    "nothing": plain(),
    "empty text": plain(message(text(""))),
    "empty message": plain(message()),
    "two texts": plain(
        message(text("One."), text("Two."), {"type": "refusal", "refusal": "Not three."}),
        message(text("Four."), id="msg_2", phase="final_answer"),
    ),
    "log probabilities": plain(message(text("Seven", logprobs=LOGPROBS))),
    "summaries": plain(
        {"id": "rs_1", "type": "reasoning", "summary": [SUMMARY, {**SUMMARY, "text": "And on."}],
         "encrypted_content": "c2VhbGVk"},
        message(text("Seven.")),
    ),
    "sealed reasoning": plain(
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"},
        {"id": "rs_2", "type": "reasoning", "summary": []},
        message(text("Seven."), phase="commentary"),
    ),
    "readable reasoning": plain(
        {"id": "rs_1", "type": "reasoning", "summary": [SUMMARY], "status": "completed",
         "content": [{"type": "reasoning_text", "text": "Let me see."},
                     {"type": "reasoning_text", "text": "I see."}]},
        message(text("Seven.")),
    ),
    "parallel calls": plain(
        message(text("Both:")),
        call("1", "weather", '{"city": "Basel"}'),
        call("2", "now", "{}"),
        call("3", "x-y.z", '{"a": [1, {"b": null}]}', namespace="n"),
    ),
    "one id twice": plain(
        call("1", "weather", '{"city": "Basel"}'),
        call("1", "weather", '{"city": "Bern"}', id="fc_2"),
    ),
    "custom call": plain(
        {"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "call_1",
         "name": "shell", "input": "ls -l\n"},
    ),
    "citations": plain(
        message(text("It is so.", SOURCE, SOURCE)),
        message(text("Hm.", SOURCE, STRANGE_SOURCE), id="msg_2"),
    ),
    "refusal": plain(message({"type": "refusal", "refusal": "I'd rather not."})),
    "server tools": plain(
        {"id": "ws_1", "type": "web_search_call", "status": "completed",
         "action": {"type": "search", "query": "weather"}},
        {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1 + 1",
         "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "2"}]},
        {"id": "mcp_1", "type": "mcp_call", "status": "completed", "server_label": "s",
         "name": "echo", "arguments": '{"x": 1}', "output": "hello", "error": None,
         "approval_request_id": None},
        {"id": "ig_1", "type": "image_generation_call", "status": "completed",
         "result": "aGVsbG8=", "output_format": "png"},
        {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []},
        message(text("Sunny.")),
    ),
    "tools of the client's side": plain(
        {"id": "cu_1", "type": "computer_call", "status": "completed", "call_id": "call_1",
         "action": {"type": "click", "button": "left", "x": 1, "y": 2},
         "pending_safety_checks": []},
        {"id": "lsh_1", "type": "local_shell_call", "status": "completed", "call_id": "call_2",
         "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"id": "sh_1", "type": "shell_call", "status": "completed", "call_id": "call_3",
         "action": {"commands": ["ls"]}},
        {"id": "apc_1", "type": "apply_patch_call", "status": "completed", "call_id": "call_4",
         "operation": {"type": "delete_file", "path": "a"}},
        {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["q"],
         "results": None},
        {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "s", "name": "echo",
         "arguments": "{}"},
    ),
    "unknown things": plain(
        {"id": "comp_1", "type": "compaction", "encrypted_content": "c2VhbGVk"},
        message({"type": "hologram", "shape": "cube"}, text("On we go.", odd=None)),
        strange={"a": 1},
    ),
    "cut short": plain(
        message(text("1, 2, "), status="incomplete"),
        status="incomplete", incomplete_details={"reason": "max_output_tokens"},
    ),
    "filtered": plain(
        status="incomplete", incomplete_details={"reason": "content_filter"},
    ),
}  # fmt: skip


def _pieces(words: str) -> Iterator[str]:
    for at in range(0, len(words), 5):
        yield words[at : at + 5]


_WORDS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}
_ARGUMENTS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
}
_PROGRESS = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_list_tools": ("in_progress", "completed"),
}


def _part_events(place: Wire, base: str, entry: Wire) -> Iterator[Wire]:
    """The events of one part of a message or of reasoning."""
    kind, field = _WORDS.get(entry["type"], ("", ""))
    begun = {**entry, field: ""} if kind else entry
    begun |= {key: [] for key in ("annotations", "logprobs") if key in entry}
    yield {"type": f"{base}.added", **place, "part": begun}
    if kind:
        logprobs = list(entry.get("logprobs", ()))
        more: Wire = {"logprobs": []} if entry["type"] == "output_text" else {}
        for piece in _pieces(entry[field]):
            told, logprobs = (logprobs, []) if logprobs else ([], [])
            more |= {"logprobs": told} if more else {}
            yield {"type": f"{kind}.delta", **place, "delta": piece, **more, "obfuscation": "xx"}
        for number, source in enumerate(entry.get("annotations", ())):
            yield {"type": "response.output_text.annotation.added", **place,
                   "annotation_index": number, "annotation": source}  # fmt: skip
        whole = {"logprobs": entry.get("logprobs", [])} if more else {}
        yield {"type": f"{kind}.done", **place, field: entry[field], **whole}
    yield {"type": f"{base}.done", **place, "part": entry}


def _begun(item: Wire) -> Wire:
    """An item as in its `output_item.added` event."""
    kind = item["type"]
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    begun |= {key: [] for key in ("content", "summary") if key in item}
    if kind == "reasoning":
        begun.pop("content", None)
    if kind in _ARGUMENTS:
        begun[_ARGUMENTS[kind][1]] = ""
    for late in ("outputs", "output", "result"):
        if late in begun:
            begun[late] = None
    if "encrypted_content" in begun and kind == "reasoning":
        begun["encrypted_content"] = "unfinished"  # W26
    return begun


def _item_events(index: int, item: Wire) -> Iterator[Wire]:
    """The events of one item, split as the provider splits them."""
    kind = item["type"]
    place = {"item_id": item["id"], "output_index": index}
    yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
    for word in _PROGRESS.get(kind, ()):
        yield {"type": f"response.{kind}.{word}", **place}
    for number, entry in enumerate(item.get("summary", ())):
        yield from _part_events(
            {**place, "summary_index": number}, "response.reasoning_summary_part", entry
        )
    for number, entry in enumerate(item.get("content", ())):
        yield from _part_events({**place, "content_index": number}, "response.content_part", entry)
    if kind in _ARGUMENTS:
        base, field = _ARGUMENTS[kind]
        for piece in _pieces(item[field]):
            yield {"type": f"{base}.delta", **place, "delta": piece}
        yield {"type": f"{base}.done", **place, field: item[field]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def numbered(events: Iterable[Wire]) -> list[Wire]:
    """The events with sequence numbers (W33)."""
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def events_of(body: Wire) -> list[Wire]:
    """The stream events that are equivalent to a plain body."""
    begun = {**body, "status": "in_progress", "output": [], "usage": None,
             "incomplete_details": None}  # fmt: skip
    events = [
        {"type": f"response.{word}", "response": begun} for word in ("created", "in_progress")
    ]
    for index, item in enumerate(body["output"]):
        events += _item_events(index, item)
    return numbered([*events, {"type": f"response.{body['status']}", "response": body}])


written = streams.written
FRAMES = {name: events_of(body) for name, body in BODIES.items()}
STREAMS = {name: written(frames) for name, frames in FRAMES.items()}

decoded = decoding(DIALECT)
encoded = encoding(StreamEncoder)  # without envelopes for foreign sealed state
said = streams.said


def answered(events: Iterable[Event]) -> bytes:
    """The stream that a client of the dialect receives, including envelopes."""
    encoder = DIALECT.stream_encoder()
    return b"".join([encoder.feed(event) for event in events]) + encoder.close()


# --- for the tests of all dialects

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _ended(stream: bytes, *, may_be_odd: bool = False) -> str:
    state = check_stream(stream, may_contradict=may_be_odd).state
    return "complete" if state in {"completed", "incomplete"} else state


_ERROR = {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None}

_FOLDER = "openai_responses/ai____fixtures__-"
TABLE = {"openai-responses": Streams(
    dialect=DIALECT,
    bodies=BODIES,
    frames=FRAMES,
    written=written,
    encoder=StreamEncoder,
    ended=_ended,
    said=said,
    last=[f'"{kind}"'.encode() for kind in ENDS],
    failures=MALFORMED | {"slow down": Failure(
        written([*FRAMES["text"][:5], _ERROR, *FRAMES["text"][5:]]),
        "Slow down", "rate_limit_exceeded", 429,
        [b"event: response.failed\n", b'"message":"Slow down","param":null'],
    )},
    in_pieces=(
        events_of(plain(message(text("abcdefgh")))),
        ("ResponseStart PartStart PartDelta PartDelta PartStop"
         " ResponseStart UsageUpdate ChoiceFinish ResponseEnd"),
        ["abcde", "fgh"],
    ),
    words=["message", "function_call", "reasoning", "output_text", "completed", "in_progress",
           "assistant", "\ud800"],
    keys=["type", "text", "output_index", "content", "item", "id", "part"],
    recorded_faults={
        f"{_FOLDER}openai-error.1.json": "failed",
        f"{_FOLDER}openai-shell-container.1.json": "corrected",
        # GitHub's gateway changes the ids in each event; the response's first id counts.
        f"{_FOLDER}github-copilot-id-rotation.1.json": "renamed",
        "openai_responses/rig__reasoning_roundtrip-streaming__00.json": "renamed",
        "openai_responses/rig__reasoning_roundtrip-streaming__01.json": "renamed",
        f"{_FOLDER}azure-reasoning-encrypted-content.1.json": "several",
        f"{_FOLDER}openai-reasoning-encrypted-content.1.json": "several",
        f"{_FOLDER}openai-shell-tool.1.json": "several",
    },
    order="kept if valid",
    generated=["one id twice"],
    lost_when_cut=(),
)}  # fmt: skip
