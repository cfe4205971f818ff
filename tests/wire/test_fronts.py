"""Sealed state of a model is returned to it through a client that speaks another dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
)
from dragoman.model.media import Audio
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Citation,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    Text,
    Thinking,
)
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.model.usage import FinishReason
from dragoman.wire.envelope import PREFIX, Seal, wrap
from dragoman.wire.gemini.dialect import TARGET
from dragoman.wire.unsealing import unsealed
from tests.wire.clients import (
    FRONTS,
    asked,
    folded,
    history,
    needed,
    returned,
    returned_stream,
    seals,
    sent,
    streamed,
)

CALL = {"name": "weather", "args": {"city": "Basel"}}


def _gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
        ],
        "modelVersion": "gemini-3-pro",
        "responseId": "g1",
    }


def _responses(*output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "model": "gpt-5", "status": "completed",
        "output": list(output),
    }  # fmt: skip


def _reasoning(number: int, *summaries: str, sealed: str | None = "Z0FBQUE=") -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summaries]
    item: dict[str, Any] = {"id": f"rs_{number}", "type": "reasoning", "summary": texts}
    return item if sealed is None else item | {"encrypted_content": sealed}


def _said(number: int, text: str, **fields: Any) -> dict[str, Any]:
    words = {"type": "output_text", "text": text, "annotations": []}
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed",
            "content": [words], **fields}  # fmt: skip


def _called(number: int) -> dict[str, Any]:
    return {"id": f"fc_{number}", "type": "function_call", "status": "completed",
            "call_id": f"call_{number}", "name": "weather",
            "arguments": '{"city":"Basel"}'}  # fmt: skip


def _anthropic(*content: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
            "stop_reason": "end_turn", "stop_sequence": None, "content": list(content),
            "usage": {"input_tokens": 1, "output_tokens": 2}}  # fmt: skip


def _chat(**message: Any) -> dict[str, Any]:
    told = {"role": "assistant", "content": None, **message}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "deepseek-v4",
            "choices": [{"index": 0, "message": told, "finish_reason": "stop"}]}  # fmt: skip


THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "EuYBCkQ="}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}}
SEARCHED: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "RQ=="}
    ]},
    {"type": "text", "text": "It says so.", "citations": [
        {"type": "web_search_result_location", "url": "https://a", "title": "A",
         "encrypted_index": "Eo8B", "cited_text": "so"}
    ]},
]  # fmt: skip
CHAT_CALL = {"id": "call_1", "type": "function",
             "function": {"name": "weather", "arguments": '{"city":"Basel"}'}}  # fmt: skip

ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini: parallel calls, the first signed": ("gemini", _gemini(
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "a", **CALL}, "thoughtSignature": "c2lnLWE="},
        {"functionCall": {"id": "b", **CALL}},
    )),
    "gemini: a call without an id": ("gemini", _gemini(
        {"functionCall": CALL, "thoughtSignature": "c2ln"},
    )),
    "gemini: signed text": ("gemini", _gemini(
        {"text": "Hm.", "thought": True, "thoughtSignature": "dGhvdWdodA=="},
        {"text": "Warm, "}, {"text": "and dry.", "thoughtSignature": "dGV4dA=="},
    )),
    "gemini: a signature alone": ("gemini", _gemini(
        {"text": "Warm."}, {"text": "", "thoughtSignature": "dGV4dA=="},
    )),
    "responses: summaries and a message": ("openai-responses", _responses(
        _reasoning(1, "First.", "Then."), _said(1, "Warm."),
    )),
    "responses: nothing to read, and calls": ("openai-responses", _responses(
        _reasoning(1), _called(1), _called(2),
    )),
    "responses: thinking in between": ("openai-responses", _responses(
        _reasoning(1, "First."), _said(1, "I look. ", phase="commentary"), _called(1),
        _reasoning(2, "Then.", "Now."), _said(2, "And again."), _called(2),
    )),
    "responses: a compaction": ("openai-responses", _responses(
        _said(1, "Warm."), {"id": "cmp_1", "type": "compaction", "encrypted_content": "Z0FB"},
    )),
    "responses: a custom tool": ("openai-responses", _responses(
        _reasoning(1), {"id": "ctc_1", "type": "custom_tool_call", "status": "completed",
                        "call_id": "call_1", "name": "shell", "input": "ls -l"},
    )),
    "anthropic: thinking and a call": ("anthropic", _anthropic(
        THOUGHT, {"type": "redacted_thinking", "data": "EmwKAhgBEgy"},
        {"type": "text", "text": "I look."}, USE,
    )),
    "anthropic: thinking in between": ("anthropic", _anthropic(
        THOUGHT, {"type": "text", "text": "One."}, THOUGHT | {"signature": "RXVZQg=="},
        {"type": "text", "text": "Two."}, USE,
    )),
    "anthropic: a search": ("anthropic", _anthropic(*SEARCHED)),
    "anthropic: a call by code": ("anthropic", _anthropic(
        USE | {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}},
    )),
    "chat: plain thinking": ("openai-chat", _chat(
        content="Warm.", reasoning_content="Let me see.", tool_calls=[CHAT_CALL],
    )),
    "chat: sealed details": ("openai-chat", _chat(content="Warm.", reasoning_details=[
        {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "ZGF0YQ==", "id": "rs_1", "index": 1},
    ])),
    "chat: Google's signature": ("openai-chat", _chat(tool_calls=[
        CHAT_CALL | {"extra_content": {"google": {"thought_signature": "c2ln"}}},
    ])),
}  # fmt: skip
LOOPS = [
    pytest.param(home, body, front, id=f"{name}, behind {front}")
    for name, (home, body) in ANSWERS.items()
    for front in FRONTS
    if front != home
]


def decoded(home: str, body: dict[str, Any]) -> Response:
    """The decoded response of the model behind the front."""
    return dragoman.dialect(home).decode_response(json.dumps(body))


def direct(response: Response) -> list[Message]:
    """The same without a front: the request that the provider's own client would send."""
    return [Message(Role.ASSISTANT, response.message.parts_with_origin())]


def events_of(response: Response) -> Iterator[Event]:
    """A response as a stream: content in deltas where possible, seals last (W26, W67)."""
    message = response.message
    yield ResponseStart(id=response.id, model=response.model, origin=message.origin)
    for index, part in enumerate(message.parts):
        if isinstance(part, (Text, Thinking)):
            started: dict[str, Any] = {"text": ""}
            if isinstance(part, Thinking):
                started |= {"signature": None, "data": None}
            yield PartStart(index, part.replace(**started))
            for piece in _pieces(part.text):
                yield PartDelta(index, piece)
            if isinstance(part, Thinking) and part.signature:
                yield PartDelta(index, signature=part.signature)
            sealed = part.data is not None if isinstance(part, Thinking) else bool(part.citations)
            if part.item_id is not None:
                yield PartStop(index)
            yield PartStop(index, part if sealed else None)
        else:
            yield PartStart(index, part)
            yield PartStop(index)
    yield ChoiceFinish(response.finish or FinishReason.STOP, response.choices[0].finish_raw)
    yield ResponseEnd()


def _pieces(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


# --- round trips


@pytest.mark.parametrize(("home", "body", "front"), LOOPS)
def test_sealed_state_survives_a_round_trip(home: str, body: dict[str, Any], front: str) -> None:
    """The provider gets the request that its own client would send, seals and ids included."""
    response = decoded(home, body)
    back = sent(home, returned(front, response))
    assert needed(back.body) == needed(sent(home, direct(response)).body)
    assert seals(home, back.body) or home == "openai-chat" or "caller" in str(body)
    _check(home, back.body)


@pytest.mark.parametrize(("home", "body", "front"), LOOPS)
def test_sealed_state_survives_a_streamed_round_trip(
    home: str, body: dict[str, Any], front: str
) -> None:
    """A streamed answer survives the round trip like a plain one."""
    response = decoded(home, body)
    events = list(events_of(response))
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    assert accumulator.response == response
    back = sent(home, returned_stream(front, events))
    assert needed(back.body) == needed(sent(home, direct(response)).body)


def _check(home: str, body: dict[str, Any]) -> None:
    full: Any = dragoman.dialect(home)
    found = full.check(body)
    assert [v for v in found if v.severity == "error"] == []


def _parts(messages: tuple[Message, ...]) -> list[AnyPart]:
    return [part for message in messages for part in message.parts]


# --- what clients see


@pytest.mark.parametrize("front", [f for f in FRONTS if f != "anthropic"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_thinking_is_shown_in_the_client_s_own_field(front: str, *, is_stream: bool) -> None:
    """Readable thinking is in the field that the client's dialect has for it."""
    response = decoded("anthropic", ANSWERS["anthropic: thinking in between"][1])
    if is_stream:
        body = folded(front, streamed(front, events_of(response)))
    else:
        body = dragoman.dialect(front).encode_response(response).body
    if front == "openai-chat":
        shown = body["choices"][0]["message"]["reasoning_content"]
        assert shown.replace("\n", "") == "Let me see." * 2
        thinking = [detail["text"] for detail in body["choices"][0]["message"]["reasoning_details"]]
    elif front == "gemini":
        parts = body["candidates"][0]["content"]["parts"]
        thinking = [part["text"] for part in parts if part.get("thought") and part["text"]]
    else:
        items = [item for item in body["output"] if item["type"] == "reasoning"]
        thinking = [entry["text"] for item in items for entry in item["content"]]
    assert thinking == ["Let me see.", "Let me see."]


def test_text_is_first_and_calls_are_last() -> None:
    """A call's carrier is before the call, a text's state after it, whole and streamed."""
    response = decoded("gemini", ANSWERS["gemini: signed text"][1])
    content = dragoman.dialect("anthropic").encode_response(response).body["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "text", "redacted_thinking"]
    response = decoded("openai-responses", _responses(_reasoning(1, "Hm."), _said(2, "Hello.")))
    content = dragoman.dialect("anthropic").encode_response(response).body["content"]
    assert [block["type"] for block in content] == ["thinking", "text"]
    response = decoded("openai-responses", _responses(_said(1, "Hello.")))
    content = dragoman.dialect("anthropic").encode_response(response).body["content"]
    assert [block["type"] for block in content] == ["text"]
    response = decoded("gemini", ANSWERS["gemini: a call without an id"][1])
    content = dragoman.dialect("anthropic").encode_response(response).body["content"]
    assert [block["type"] for block in content] == ["redacted_thinking", "tool_use"]


@pytest.mark.parametrize("output", [
    [_said(1, "Hello.")],
    [_reasoning(1, "Hm."), _said(2, "Hello.")],
    [_said(1, "I look.", phase="commentary"), _reasoning(2), _said(3, "Hello.")],
])  # fmt: skip
def test_a_streamed_answer_ends_with_its_text(output: list[dict[str, Any]]) -> None:
    """`claude -p` prints nothing if the last block is an envelope; here none is needed."""
    response = decoded("openai-responses", _responses(*output))
    frames = streamed("anthropic", events_of(response))
    content = folded("anthropic", frames)["content"]
    assert content[-1] == {"type": "text", "text": "Hello."}
    whole = dragoman.dialect("anthropic").encode_response(response).body["content"]
    assert [block["type"] for block in whole] == [block["type"] for block in content]


def test_an_id_returns_to_what_the_reasoning_led_to() -> None:
    """It is given to the part of that kind that directly follows, and to nothing else."""
    home = Origin(dialect="openai-responses")
    reasoning = Thinking("", "RQ==", "redacted", item_id="rs_1")
    seal = Seal(home, reasoning, leads=("Text", "msg_1"))
    carrier = Thinking(form="redacted", data=wrap(seal))
    call = ToolCall("c1", "f", raw="{}")
    assert unsealed((carrier, Text("Hello.")), "anthropic")[1].item_id == "msg_1"
    for parts in ((carrier,), (carrier, call), (carrier, call, Text("a"))):
        assert [part.item_id for part in unsealed(parts, "anthropic")][1:] == [None] * (
            len(parts) - 1
        )


@pytest.mark.parametrize("front", [front for front in FRONTS if front != "openai-responses"])
def test_an_answer_without_thinking_has_no_envelope(front: str) -> None:
    """Its ids and statuses are no state: no provider needs them back. A preamble is marked."""
    response = decoded("openai-responses", _responses(_said(1, "Hello."), _called(1)))
    preamble = decoded("openai-responses", _responses(_said(1, "I look.", phase="commentary")))
    speaker = dragoman.dialect(front)
    for answer, is_marked in ((response, False), (preamble, True)):
        whole = speaker.encode_response(answer).to_bytes()
        assert (PREFIX.encode() in whole) is is_marked
        assert (PREFIX.encode() in streamed(front, events_of(answer))) is is_marked


@pytest.mark.parametrize("front", FRONTS)
def test_a_numbered_call_has_no_envelope(front: str) -> None:
    """Ollama numbers its calls; the number is no state, and leaving it out loses nothing."""
    called = {"function": {"index": 0, "name": "map", "arguments": {}}, "id": "call_1"}
    message = {"role": "assistant", "content": "", "tool_calls": [called]}
    response = decoded("ollama", {"model": "m", "done": True, "message": message})
    encoded = dragoman.dialect(front).encode_response(response)
    assert PREFIX.encode() not in encoded.to_bytes()
    assert PREFIX.encode() not in streamed(front, events_of(response))
    assert not encoded.losses


def test_carriers_do_not_shift_loss_paths() -> None:
    """The paths of losses do not count carriers."""
    shown = Audio(data="aGk=", mime="audio/wav", signature="c2ln")
    parts = (Thinking("", "eA==", "redacted"), Text("a", signature="c2ln"), shown)
    message = Message(Role.ASSISTANT, parts, origin=Origin(dialect="gemini"))
    encoded = dragoman.dialect("anthropic").encode_response(Response(choices=(Choice(0, message),)))
    assert [loss.path for loss in encoded.losses] == ["choices[0].message.parts[2]"]


def test_answers_in_the_front_s_dialect_have_no_envelopes() -> None:
    """Answers that came in the front's own dialect need no envelopes."""
    for home, body in ANSWERS.values():
        written = dragoman.dialect(home).encode_response(decoded(home, body))
        assert PREFIX.encode() not in written.to_bytes()


def test_parts_without_envelopes_are_not_copied() -> None:
    """Parts that need no envelope are the same objects as before."""
    parts = (Thinking("a", signature="c2ln"), Text("b"), ToolCall("c", "f", raw="{}"))
    assert unsealed(parts, "gemini") is parts


# --- changes by clients


@pytest.mark.parametrize("front", FRONTS)
def test_edited_thinking_loses_its_seal(front: str) -> None:
    """The provider would refuse it (W54), so the seal is left out and the rest is kept."""
    home = "anthropic" if front != "anthropic" else "openai-responses"
    name = {"anthropic": "anthropic: thinking and a call",
            "openai-responses": "responses: summaries and a message"}[home]  # fmt: skip
    written = dragoman.dialect(front).encode_response(decoded(home, ANSWERS[name][1])).to_bytes()
    for word in (b"Let me see.", b"First."):
        written = written.replace(word, b"Tampered.")
    back = asked(front, history(front, json.loads(written)))
    thoughts = [part for part in _parts(back) if isinstance(part, Thinking) and part.text]
    assert thoughts[0].text == "Tampered."
    assert thoughts[0].signature is None
    assert thoughts[0].data is None
    assert thoughts[0].origin is not None
    assert thoughts[0].origin.dialect == home


def test_a_carrier_without_its_part_is_dropped() -> None:
    """The carrier of a text or call that was dropped or edited is left out."""
    body = ANSWERS["responses: thinking in between"][1]
    content = history(
        "anthropic",
        dragoman.dialect("anthropic").encode_response(decoded("openai-responses", body)).body,
    )[0]["content"]
    kept = [block for block in content if block["type"] not in ("text", "tool_use")]
    back = asked("anthropic", [{"role": "assistant", "content": kept}])
    assert [type(part) for part in _parts(back)] == [Thinking] * 3
    changed = [
        block | {"text": "x"} if block["type"] == "text" else block
        for block in content
        if block["type"] != "thinking"
    ]
    back = asked("anthropic", [{"role": "assistant", "content": changed}])
    assert [(type(part), part.item_id) for part in _parts(back)] == [
        (Text, None), (ToolCall, None), (Text, None), (ToolCall, None),
    ]  # fmt: skip


def test_a_message_of_carriers_only_is_dropped() -> None:
    """A message that holds nothing but carriers is not sent, and the request stays valid."""
    response = decoded("gemini", ANSWERS["gemini: a call without an id"][1])
    for front in FRONTS:
        if front == "gemini":
            continue
        said = history(front, dragoman.dialect(front).encode_response(response).body)
        if front == "anthropic":
            said[0]["content"] = said[0]["content"][:1]
        elif front == "openai-chat":
            said[0]["content"] = "Hm."
            del said[0]["tool_calls"]
        else:
            said = said[:1]
        for home in FRONTS:
            _check(home, sent(home, asked(front, said)).body)


def test_separate_stream_chunks_are_merged() -> None:
    """google-genai stores each chunk of a stream as its own content; these are merged again."""
    for name in ("anthropic: thinking in between", "responses: thinking in between"):
        home, body = ANSWERS[name]
        response = decoded(home, body)
        stream = streamed("gemini", events_of(response))
        chunks = [json.loads(line[5:]) for line in stream.splitlines() if line.startswith(b"data:")]
        contents = [chunk["candidates"][0]["content"] for chunk in chunks]
        assert len(contents) > 10
        back = asked("gemini", contents)
        assert len(back) == 1
        found, wanted = sent(home, back).body, sent(home, direct(response)).body
        assert seals(home, needed(found)) == seals(home, needed(wanted))


def test_a_text_split_by_the_client_keeps_its_content() -> None:
    """If Chat's one text comes back as several, state that can't be assigned is left out."""
    home, body = ANSWERS["responses: thinking in between"]
    said = history("openai-chat", dragoman.dialect("openai-chat").encode_response(
        decoded(home, body)).body)  # fmt: skip
    said[0]["content"] = [{"type": "text", "text": text} for text in ("I look. ", "And", " again.")]
    back = _parts(asked("openai-chat", said))
    assert [part.item_id for part in back if isinstance(part, Text)] == ["msg_1", None, None]
    said[0]["content"] = "I look. And  again."
    back = _parts(asked("openai-chat", said))
    assert [part.text for part in back if isinstance(part, Text)] == ["I look. ", "And  again."]


# --- another model, another gateway


@pytest.mark.parametrize(("home", "body", "front"), LOOPS)
def test_another_model_gets_no_sealed_state(home: str, body: dict[str, Any], front: str) -> None:
    """Another model gets neither state nor envelope, its request is valid, losses are reported."""
    response = decoded(home, body)
    back = returned(front, response)
    kept = json.dumps(sent(home, direct(response)).body)
    for other in FRONTS:
        if other == home:
            continue
        encoded = sent(other, back)
        written = encoded.to_bytes()
        assert PREFIX.encode() not in written
        # Google's field on Chat's calls holds what is Gemini's own.
        is_its_own = other == "gemini" and "thought_signature" in kept
        for _, seal in seals(home, json.loads(kept)):
            assert (f'"{seal}"'.encode() in written) == is_its_own
        _check(other, encoded.body)


def test_nested_gateways_get_their_own_envelopes_back() -> None:
    """In any two dialects, each gateway opens its own envelopes and no others."""
    response = decoded("gemini", ANSWERS["gemini: parallel calls, the first signed"][1])
    for inner in ("anthropic", "openai-chat", "openai-responses"):
        for outer in FRONTS:
            far = dragoman.dialect(inner).encode_response(response).body
            near = dragoman.dialect(inner).decode_response(far)
            back = sent(inner, returned(outer, near)).body
            field = {"openai-responses": "input"}.get(inner, "messages")
            said = [turn for turn in back[field] if turn.get("role") != "user"]
            said = [turn for turn in said if turn.get("type") != "function_call_output"]
            home = sent("gemini", asked(inner, [t for t in said if t.get("role") != "tool"]))
            assert seals("gemini", home.body) == [("thoughtSignature", "c2lnLWE=")], (inner, outer)


def test_a_front_without_a_state_field_reports_the_loss() -> None:
    """Ollama's clients see thinking; the seal is a loss, and calls get W84's placeholder."""
    response = decoded("gemini", ANSWERS["gemini: parallel calls, the first signed"][1])
    encoded = dragoman.dialect("ollama").encode_response(response)
    assert PREFIX.encode() not in encoded.to_bytes()
    assert "choices[0].message.parts[1].signature" in [loss.path for loss in encoded.losses]
    assert encoded.body["message"]["thinking"] == "Hm."
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, encoded.body["message"]]}
    request = dragoman.dialect("ollama").decode_request(body)
    target = TARGET.with_flags({"thinking.signs_calls": True})
    parts = dragoman.dialect("gemini").encode_request(request, target).body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == [
        "skip_thought_signature_validator",
        None,
    ]


@pytest.mark.parametrize("text", [PREFIX, PREFIX + "AAAA", PREFIX + "é", PREFIX + "A" * 99])
def test_invalid_envelopes_are_plain_signatures(text: str) -> None:
    """A value that only resembles an envelope is a signature of the front's own dialect."""
    block = {"type": "thinking", "thinking": "Hm.", "signature": text}
    (message,) = asked("anthropic", [{"role": "assistant", "content": [block]}])
    assert [part.signature for part in message.parts] == [text]
    assert sent("anthropic", [message]).body["messages"][1]["content"] == [block]


# --- streams


def _stream(front: str, *events: Event) -> list[AnyPart]:
    start = ResponseStart(id="r", model="m", origin=Origin(dialect="gemini", model="m"))
    end = (ChoiceFinish(FinishReason.STOP), ResponseEnd())
    return _parts(returned_stream(front, (start, *events, *end)))


@pytest.mark.parametrize("front", ["anthropic", "openai-chat", "openai-responses"])
def test_a_signature_may_come_late(front: str) -> None:
    """A signature may come after the part has begun, or only with its last event (W85)."""
    found = _stream(
        front,
        PartStart(0, Text("")), PartDelta(0, "Warm."), PartDelta(0, signature="dGV4dA=="),
        PartStop(0),
        PartStart(1, ToolCall("a", "f", raw="")), PartDelta(1, "{}"),
        PartStop(1, ToolCall("a", "f", raw="{}", signature="Y2FsbA==")),
        PartStart(2, ToolCall("b", "f", raw="{}", signature="b25l")),
        PartStop(2, ToolCall("b", "f", raw="{}", signature="dHdv")),
        PartStart(3, Thinking("", form="summary")), PartDelta(3, "Hm."),
        PartStop(3, Thinking("Hm. So.", None, "summary", signature="dGhpbms=")),
    )  # fmt: skip
    by_kind = sorted((type(part).__name__, part.signature) for part in found)
    assert by_kind == [
        ("Text", "dGV4dA=="), ("Thinking", "dGhpbms="), ("ToolCall", "Y2FsbA=="),
        ("ToolCall", "dHdv"),
    ]  # fmt: skip


@pytest.mark.parametrize("front", ["anthropic", "openai-chat", "openai-responses"])
def test_interleaved_parts_keep_their_state(front: str) -> None:
    """Parts that interleave in a stream each get their own state."""
    found = _stream(
        front,
        PartStart(0, ToolCall("a", "f", raw="", signature="YQ==")),
        PartStart(1, ToolCall("b", "g", raw="", signature="Yg==")),
        PartDelta(0, '{"x":'), PartDelta(1, '{"y":'), PartDelta(0, "1}"), PartDelta(1, "2}"),
        PartStart(2, Text("")), PartStop(0), PartDelta(2, "So."), PartStop(1),
        PartDelta(2, signature="Yw=="),
    )  # fmt: skip
    calls = [(p.id, p.arguments, p.signature) for p in found if isinstance(p, ToolCall)]
    assert calls == [("a", {"x": 1}, "YQ=="), ("b", {"y": 2}, "Yg==")]
    assert [(p.text, p.signature) for p in found if isinstance(p, Text)] == [("So.", "Yw==")]


def test_streamed_calls_keep_their_signatures() -> None:
    """Chat's call deltas may have Google's field in the first delta or in one alone (W85)."""
    events: list[Event] = [
        ResponseStart(id="r", model="m", origin=Origin(dialect="openai-chat")),
        ToolCallDelta(0, "a", "f", "", signature="YQ=="), ToolCallDelta(0, None, None, "{}"),
        ToolCallDelta(1, "b", "f", "{}"), ToolCallDelta(1, signature="Yg=="),
        ChoiceFinish(FinishReason.TOOL_CALLS), ResponseEnd(),
    ]  # fmt: skip
    for front in ("anthropic", "openai-responses"):
        found = _parts(returned_stream(front, events))
        assert [(part.signature, part.origin) for part in found] == [
            ("YQ==", Origin(dialect="openai-chat")),
            ("Yg==", Origin(dialect="openai-chat")),
        ]


def test_text_is_streamed_at_once() -> None:
    """Each text delta is written when it arrives, and the seal when the part ends."""
    for front in FRONTS:
        full: Any = dragoman.dialect(front)
        encoder = full.stream_encoder()
        origin = Origin(dialect="gemini" if front != "gemini" else "anthropic")
        encoder.feed(ResponseStart(id="r", model="m", origin=origin))
        for index, kind in enumerate((Thinking, Text)):
            encoder.feed(PartStart(index, kind("", signature="c2ln")))
            assert b"Piece" in encoder.feed(PartDelta(index, "Piece"))
            ended = encoder.feed(PartStop(index))
            ended += encoder.feed(PartStart(index + 2, Text("")))
            assert PREFIX.encode() in ended
        assert not encoder.losses


def test_parts_without_a_stop_event_are_sealed_at_the_end() -> None:
    """Streams made by hand may lack stop events; parts are sealed at the stream's end."""
    found = _stream("anthropic", PartStart(0, Thinking("Hm.")), PartDelta(0, signature="c2ln"))
    assert [(part.signature, part.origin and part.origin.dialect) for part in found] == [
        ("c2ln", "gemini")
    ]


# --- random responses

TEXTS = st.text("ab \n\u00e9", max_size=6)
SEALS = st.none() | st.sampled_from(["c2ln", "eA==", "x" * 40])
IDS = st.none() | st.sampled_from(["id_1", "id_2"])


def _parts_of(home: str) -> st.SearchStrategy[list[AnyPart]]:
    extras = st.sampled_from([{}, {home: {"odd": [1, None]}}])
    state: dict[str, Any] = {"signature": SEALS, "item_id": IDS, "extras": extras}
    calls = st.builds(lambda n, **s: ToolCall(f"call_{n}", "f", raw="{}", **s),
                      st.integers(0, 10**9), **state)  # fmt: skip
    cited = st.sampled_from([(), (Citation(kind="web", extras={home: {"encrypted_index": "E"}}),)])
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(Text, TEXTS, cited, **state),
        st.builds(Thinking, TEXTS, SEALS, st.sampled_from(["full", "summary"]), **state),
        calls,
        st.builds(Opaque, st.just(home), st.just({"type": "odd"})),
        st.builds(ServerToolCall, st.just("search"), st.just("s"), st.just({"q": 1}), item_id=IDS),
        st.builds(Refusal, st.just("No."), item_id=IDS),
    ]
    return st.lists(st.one_of(kinds), max_size=6, unique_by=lambda p: getattr(p, "id", id(p)))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_sealed_state_is_returned_exactly_or_left_out(data: st.DataObject) -> None:
    """State of any call or thinking, plain or streamed, comes back unchanged or not at all."""
    home = data.draw(st.sampled_from(FRONTS))
    front = data.draw(st.sampled_from([name for name in FRONTS if name != home]))
    parts = tuple(data.draw(_parts_of(home)))
    origin = Origin(dialect=home, model="m")
    message = make_message(Role.ASSISTANT, parts, origin=origin)
    response = Response(choices=(Choice(0, message, FinishReason.STOP),), id="r", model="m")
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    thoughts = [part for part in parts if isinstance(part, Thinking) and not part.is_empty]
    for back in (returned(front, response), returned_stream(front, events_of(response))):
        found = _parts(back)
        again = [part for part in found if isinstance(part, Thinking)]
        assert [_core(part) for part in again] == [_core(part) for part in thoughts]
        for part in found:
            if isinstance(part, ToolCall) and part.origin == origin:
                was = calls[part.id]
                assert part.signature == was.signature
                assert part.item_id in {None, was.item_id}
        assert sum(isinstance(part, ToolCall) for part in found) == len(calls)
        sealed = [(p.text, p.signature) for p in parts if isinstance(p, Text) and p.signature]
        came = [p for p in found if isinstance(p, Text) and p.origin == origin]
        assert [(p.text, p.signature) for p in came if p.signature] == sealed
        sent(home, back)


def _core(part: Thinking) -> tuple[Any, ...]:
    return (part.text, part.signature, part.data, part.item_id, part.form, dict(part.extras))


def test_forged_envelopes_do_no_harm() -> None:
    """Whatever a client writes into an envelope, a decodable request can be encoded."""
    for home in FRONTS:
        origin = Origin(dialect=home)
        odd: list[AnyPart] = [
            Thinking("", "x", extras={home: {"item": [3], ":words": 7, "type": None}}),
            Opaque(home, [[[]]]),
            Opaque("nobody", {"role": "system"}),
            Text("", signature="", extras={home: {"item": False}}),
            ServerToolCall("", None, 3, extras={home: {"id": {}}}),
            make_call("", "", raw="{", wire_id=None),
        ]
        for part in odd:
            made = wrap(Seal(origin, part))
            block = {"type": "redacted_thinking", "data": made}
            text = {"type": "text", "text": "Hi"}
            back = asked("anthropic", [{"role": "assistant", "content": [block, text]}])
            for target in FRONTS:
                encoded = sent(target, back)
                assert isinstance(encoded.to_bytes(), bytes)


def test_many_envelopes_take_linear_work() -> None:
    """A request with very many envelopes is handled; no timing, but the test must finish."""
    made = wrap(Seal(Origin(dialect="gemini"), Text("", signature="s"), owner="Text:00", length=9))
    block = {"type": "redacted_thinking", "data": made}
    text = {"type": "text", "text": "ab"}
    (message,) = asked("anthropic", [{"role": "assistant", "content": [block, text] * 4000}])
    assert len(message.parts) == 4000
