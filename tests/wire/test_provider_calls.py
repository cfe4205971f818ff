"""Calls of provider tools: text for other models, counterparts for other clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Request, Response, ServerToolCall, ServerToolResult, Target, Text
from dragoman.errors import WireError
from dragoman.model import Origin
from dragoman.model.events import Event
from dragoman.model.responses import Choice
from dragoman.model.roles import Role
from dragoman.tools import CodeExecution, FileSearch, McpServer, ToolSearch, WebFetch, WebSearch
from dragoman.wire.dialect import descriptions
from dragoman.wire.provider_calls import ProviderCall
from dragoman.wire.shown_calls import MARK, is_counterpart
from tests.corpus import Corpus
from tests.sdk_types.streams import events_of as frames_of
from tests.wire.clients import (
    FRONTS,
    asked,
    folded,
    history,
    needed,
    returned,
    returned_stream,
    sent,
    streamed,
)
from tests.wire.front_types import check_body, check_stream, request_to
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY
from tests.wire.test_fronts import direct, events_of

_Forms = dict[str, list[dict[str, Any]]]
_SEARCH: _Forms = {
    "anthropic": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
         "input": {"query": "sky"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://a.org", "title": "A",
             "encrypted_content": "sealed", "page_age": None}]},
    ],
    "openai-responses": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {
            "type": "search", "query": "sky",
            "sources": [{"type": "url", "url": "https://a.org"}]}},
    ],
    "gemini": [
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1", "args": {"queries": ["sky"]}},
         "thoughtSignature": "c2ln"},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1",
                          "response": {"search_suggestions": "<b>"}}, "thoughtSignature": "c2ln"},
    ],
}  # fmt: skip
_CODE: _Forms = {
    "anthropic": [
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution",
         "input": {"code": "print(1)\n"}},
        {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": {
            "type": "code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0,
            "content": []}},
    ],
    "openai-responses": [
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "print(1)\n",
         "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "1\n"}]},
    ],
    "gemini": [
        {"executableCode": {"language": "PYTHON", "code": "print(1)\n"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
    ],
}  # fmt: skip
_REMOTE: _Forms = {
    "anthropic": [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "docs",
         "input": {"q": "x"}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False,
         "content": [{"type": "text", "text": "Yes.", "citations": None}]},
    ],
    "openai-responses": [
        {"type": "mcp_call", "id": "mcp_1", "status": "completed", "name": "ask",
         "server_label": "docs", "arguments": '{"q":"x"}', "output": "Yes.", "error": None,
         "approval_request_id": None},
    ],
}  # fmt: skip
_KINDS: dict[str, _Forms] = {"search": _SEARCH, "code": _CODE, "remote": _REMOTE}
_CASES = [(kind, home) for kind, forms in _KINDS.items() for home in forms]


def _answer(home: str, *said: dict[str, Any]) -> Response:
    """An answer of that provider: calls, and a text."""
    if home == "anthropic":
        content = [*said, {"type": "text", "text": "Done."}]
        body: dict[str, Any] = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": content, "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
    elif home == "gemini":
        turn = {"role": "model", "parts": [*said, {"text": "Done."}]}
        candidate = {"content": turn, "finishReason": "STOP", "index": 0}
        body = {"candidates": [candidate], "modelVersion": "gemini", "responseId": "r1"}
    else:
        message = {
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        }  # fmt: skip
        body = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
                "model": "gpt", "output": [*said, message]}  # fmt: skip
    return dragoman.dialect(home).decode_response(body)


def _calls_in(front: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The provider's call and result objects in an answer."""
    if front == "anthropic":
        return [b for b in body["content"] if b["type"].endswith(("_tool_use", "_tool_result"))]
    if front == "gemini":
        parts = body["candidates"][0]["content"]["parts"]
        return [p for p in parts if "text" not in p]
    return [i for i in body["output"] if i["type"] not in ("message", "reasoning")]


# --- requests


@pytest.mark.parametrize(("kind", "home"), _CASES)
@pytest.mark.parametrize("target", [*FRONTS, "ollama"])
def test_a_call_is_readable_for_another_model(kind: str, home: str, target: str) -> None:
    """The call and its result are in the request as text, without sealed content."""
    response = _answer(home, *_KINDS[kind][home])
    encoded = sent(target, direct(response))
    if target == home:
        return
    body = json.dumps(encoded.body)
    said = {"search": ["sky"], "code": ["print(1)"], "remote": ["ask", "docs", "Yes."]}[kind]
    assert all(word in body for word in said)
    assert not any(word in body for word in ("sealed", "c2ln", "srvtoolu", "ws_1", "ci_1"))
    if kind == "search" and home != "gemini":
        assert "https://a.org" in body
    assert not dragoman.dialect(target).check(encoded.body, path=encoded.path)
    if kind == "search" and home == "anthropic":
        assert [loss.reason for loss in encoded.losses] == ["only its text can be sent"]
    if kind == "code":  # OpenAI names the container that it ran in
        assert len(encoded.losses) == (home == "openai-responses")


def test_gemini_gets_code_as_code() -> None:
    """Gemini's API accepts code and output from any origin."""
    encoded = sent("gemini", direct(_answer("anthropic", *_CODE["anthropic"])))
    assert encoded.body["contents"][1]["parts"] == [*_CODE["gemini"], {"text": "Done."}]


def test_texts_around_a_call_are_separated() -> None:
    """If a message is one text, blank lines separate a call from the texts around it."""
    home = Origin(dialect="anthropic")
    call = ServerToolCall("web_search", "srvtoolu_1", {"query": "sky"}, origin=home)
    message = Message(Role.ASSISTANT, (Text("I look."), call, Text("Blue.")))
    encoded = sent("ollama", [message])
    assert encoded.body["messages"][1]["content"] == ("I look.\n\n[Searched the web: sky]\n\nBlue.")


def test_an_unknown_call_is_its_name_and_json() -> None:
    """Calls of unknown tools are not dropped."""
    home = Origin(dialect="anthropic")
    call = ServerToolCall("teleport", "srvtoolu_1", {"to": "Mars"}, origin=home)
    result = ServerToolResult("teleport", "srvtoolu_1", {"ok": True}, origin=home)
    encoded = sent("openai-chat", [Message(Role.ASSISTANT, (call, result))])
    texts = [part["text"] for part in encoded.body["messages"][1]["content"]]
    assert texts == [
        '[Called the tool teleport]\n{"to":"Mars"}',
        '\n\n[The tool teleport returned]\n{"ok":true}',
    ]
    assert not encoded.losses


def test_another_provider_of_the_same_dialect_gets_text() -> None:
    """Only Groq supports Groq's `executed_tools`."""
    groq = Origin(dialect="openai-chat", provider="groq", model="compound")
    call = ServerToolCall("search", None, '{"query": "sky"}', origin=groq)
    request = Request(model="gpt", messages=(Message.user("Hi"), Message(Role.ASSISTANT, (call,))))
    target = Target(dialect="openai-chat", provider="openai", model="gpt")
    body = dragoman.dialect("openai-chat").encode_request(request, target).body
    assert body["messages"][1] == {"role": "assistant", "content": "[Searched the web: sky]"}


def test_code_that_has_fences_stays_one_block() -> None:
    """The fence around the block is longer than those in the code."""
    home = Origin(dialect="gemini")
    call = ServerToolCall("code_execution", None, {"code": "print('```')"}, origin=home)
    encoded = sent("openai-chat", [Message(Role.ASSISTANT, (call,))])
    assert encoded.body["messages"][1]["content"] == "[Ran code]\n````python\nprint('```')\n````"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "query", "queries", "action", "type", "url", "sources", "code", "language", "stdout",
            "results", "tools", "name", "arguments", "content", "source", "data", "outcome",
            "output", "tool_references", "groundingChunks", "web", "error_code", "search",
        ]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_NAMES = st.sampled_from([
    "web_search", "web_fetch", "code_execution", "bash_code_execution", "tool_search", "mcp",
    "tool_search_tool_regex", "code_interpreter", "file_search", "image_generation", "program",
    "mcp_list_tools", "GOOGLE_SEARCH_WEB", "URL_CONTEXT", "FILE_SEARCH", "groundingMetadata",
    "urlContextMetadata", "search", "python", "visit", "x",
])  # fmt: skip


@given(
    home=st.sampled_from([*FRONTS, "elsewhere"]),
    name=_NAMES,
    said=_JSON,
    told=_JSON,
    call_id=st.none() | st.text(max_size=3),
    server=st.none() | st.just("s"),
    is_error=st.none() | st.booleans(),
)
def test_calls_with_any_content_can_be_encoded(
    home: str,
    name: str,
    said: Any,
    told: Any,
    call_id: str | None,
    server: str | None,
    is_error: bool | None,
) -> None:
    """For every model and client, plain and streamed, and the original is restored."""
    origin = Origin(dialect=home, model="m", response_id="r")
    call = ServerToolCall(name, call_id, said, server, origin=origin)
    result = ServerToolResult(name, call_id, told, is_error, origin=origin)
    message = Message(Role.ASSISTANT, (call, result, Text("Done."))).replace(origin=origin)
    for target in FRONTS:
        if target == home:
            continue
        encoded = sent(target, [message])
        assert not dragoman.dialect(target).check(encoded.body, path=encoded.path)
        response = Response(choices=(Choice(0, message),), id="r", model="m")
        for back in (returned(target, response), returned_stream(target, events_of(response))):
            parts = [part for each in back for part in each.parts]
            assert parts[:2] == [call, result]
            assert [part.text for part in parts[2:] if isinstance(part, Text)] == ["Done."]


# --- clients behind a front


@pytest.mark.parametrize(("kind", "home"), _CASES)
@pytest.mark.parametrize("front", FRONTS)
def test_a_client_sees_the_call_in_its_own_form(kind: str, home: str, front: str) -> None:
    """Plain and streamed; the client's next request has the original, once."""
    forms = _KINDS[kind]
    if front == home or front not in forms:
        return
    response = _answer(home, *forms[home])
    events = list(events_of(response))
    for body in (
        dragoman.dialect(front).encode_response(response).body,
        folded(front, streamed(front, events)),
    ):
        shown = _calls_in(front, json.loads(json.dumps(body)))
        assert [_type(each) for each in shown] == [_type(each) for each in forms[front]]
    wanted = needed(sent(home, direct(response)).body)
    assert needed(sent(home, returned(front, response)).body) == wanted
    assert needed(sent(home, returned_stream(front, events)).body) == wanted


def _type(each: dict[str, Any]) -> str:
    return each.get("type") or next(key for key in each if key != "thoughtSignature")


@pytest.mark.parametrize(("kind", "home"), _CASES)
@pytest.mark.parametrize("front", FRONTS)
def test_a_call_without_its_envelope_is_text(kind: str, home: str, front: str) -> None:
    """If the client drops the envelope, no provider gets an id that it never issued."""
    forms = _KINDS[kind]
    if front == home or front not in forms or (front, kind) == ("gemini", "code"):
        return
    body = dragoman.dialect(front).encode_response(_answer(home, *forms[home])).body
    said = json.loads(json.dumps(history(front, body)))
    messages = asked(front, [_without_envelopes(front, each) for each in said if _is_kept(each)])
    parts = [part for message in messages for part in message.parts]
    assert not any(is_counterpart(part) for part in parts)
    for target in FRONTS:
        sent_body = json.dumps(sent(target, messages).body)
        assert MARK not in sent_body
        assert {"search": "sky", "code": "print(1)", "remote": "docs"}[kind] in sent_body


def _is_kept(item: dict[str, Any]) -> bool:
    return item.get("type") != "reasoning"


def _without_envelopes(front: str, said: dict[str, Any]) -> dict[str, Any]:
    if front == "anthropic":
        kept = [block for block in said["content"] if block["type"] != "redacted_thinking"]
        return {**said, "content": kept}
    if front == "gemini":
        parts = [{k: v for k, v in part.items() if k != "thoughtSignature"}
                 for part in said["parts"] if not part.get("thought")]  # fmt: skip
        return {**said, "parts": parts}
    return said


def test_responses_streams_all_events_of_a_call() -> None:
    """All events of OpenAI's own streams are sent in order."""
    said = [*_SEARCH["anthropic"], *_CODE["anthropic"], *_REMOTE["anthropic"]]
    stream = streamed("openai-responses", events_of(_answer("anthropic", *said)))
    frames = frames_of(stream, "openai-responses")
    kinds = [
        frame["type"].removeprefix("response.")
        for frame in frames
        if "_call" in frame["type"] or frame.get("item", {}).get("type", "").endswith("_call")
    ]
    assert kinds == [
        "output_item.added", "web_search_call.in_progress", "web_search_call.searching",
        "web_search_call.completed", "output_item.done",
        "output_item.added", "code_interpreter_call.in_progress",
        "code_interpreter_call_code.delta", "code_interpreter_call_code.done",
        "code_interpreter_call.interpreting", "code_interpreter_call.completed",
        "output_item.done",
        "output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta",
        "mcp_call_arguments.done", "mcp_call.completed", "output_item.done",
    ]  # fmt: skip


_GROUNDED = {
    "webSearchQueries": ["sky"],
    "groundingChunks": [{"web": {"uri": "https://a.org", "title": "A"}}],
    "groundingSupports": [
        {"segment": {"startIndex": 0, "endIndex": 5, "text": "Blue."}, "groundingChunkIndices": [0]}
    ],
}


@pytest.mark.parametrize("front", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_gemini_s_grounding_is_shown_as_a_search(front: str, is_stream: bool) -> None:
    """Grounding metadata become a call and citations, and are not sent back to Gemini."""
    content = {"role": "model", "parts": [{"text": "Blue."}]}
    body = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0,
                            "groundingMetadata": _GROUNDED}],
            "modelVersion": "gemini", "responseId": "r1"}  # fmt: skip
    gemini: Any = dragoman.dialect("gemini")
    response = gemini.decode_response(body)
    shown = dragoman.dialect(front).encode_response(response).body
    if is_stream:
        decoder = gemini.stream_decoder()
        events = decoder.feed(f"data: {json.dumps(body)}\n\n".encode()) + decoder.close()
        shown = folded(front, streamed(front, events))
    written = json.dumps(shown)
    first = _calls_in(front, json.loads(written))[0]
    assert first.get("input", first.get("action", {}))["query"] == "sky"
    assert ("web_search_result_location" if front == "anthropic" else "url_citation") in written
    back = asked(front, history(front, shown))
    assert sent("gemini", back).body["contents"][1] == content
    assert "sky" in json.dumps(sent("openai-chat", back).body)


def test_a_converted_citation_is_not_sent_back() -> None:
    """Claude's API would refuse a citation that it did not make."""
    shown = dragoman.dialect("anthropic").encode_response(_answer("openai-responses")).body
    cited = {"type": "web_search_result_location", "url": "https://a.org", "title": "A",
             "cited_text": "", "encrypted_index": "dragoman"}  # fmt: skip
    shown["content"][0]["citations"] = [cited]
    encoded = sent("anthropic", asked("anthropic", history("anthropic", shown)))
    assert "encrypted_index" not in json.dumps(encoded.body)
    assert any("citations" in loss.path for loss in encoded.losses)


@pytest.mark.parametrize(("kind", "home"), _CASES)
@pytest.mark.parametrize("middle", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("front", FRONTS)
def test_a_gateway_behind_a_gateway(kind: str, home: str, middle: str, front: str) -> None:
    """Each gateway restores what it converted, and the original arrives once."""
    if home == middle:
        return
    response = _answer(home, *_KINDS[kind][home])
    shown = dragoman.dialect(middle).encode_response(response).body
    relayed = dragoman.dialect(middle).decode_response(shown)
    back = (
        returned(front, relayed)
        if front != middle
        else asked(front, history(front, dragoman.dialect(front).encode_response(relayed).body))
    )
    again = sent(middle, back).body
    field = dragoman.dialect(middle).messages_field
    messages = asked(middle, again[field][1:-1])
    assert needed(sent(home, messages).body) == needed(sent(home, direct(response)).body)


_TYPES = {
    "CodeExecution": ProviderCall(CodeExecution, code="print(1)", language="python"),
    "FileSearch": ProviderCall(FileSearch, ("sky",)),
    "McpServer": ProviderCall(McpServer, tool="ask", server="docs", arguments="{}"),
    "ToolSearch": ProviderCall(ToolSearch, ("sky",)),
    "WebFetch": ProviderCall(WebFetch, urls=("https://a.org",)),
    "WebSearch": ProviderCall(WebSearch, ("sky",)),
}


def test_the_docs_list_what_clients_see() -> None:
    """The page's table has every kind that a dialect shows, by the type of its call."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "provider-tools.md").read_text("utf-8")
    _, _, section = page.partition("## Server-side tool calls")
    for each in descriptions():
        forms = each.provider_calls
        for kind, shown in {} if forms is None else forms.shown.items():
            row = next(r for r in section.splitlines() if r.startswith(f"| `{kind.__name__}` |"))
            (call,) = shown.call(_TYPES[kind.__name__], "x_1")
            choice = Choice(0, Message(Role.ASSISTANT, (call,)))
            body = dragoman.dialect(each.name).encode_response(Response(choices=(choice,))).body
            (written,) = _calls_in(each.name, json.loads(json.dumps(body)))
            assert f"`{_type(written)}`" in row, kind


# --- recorded answers


_FAULTY = "openai-image-generation-tool.1"
"""Its picture was cut by hand."""


def _recorded(corpus: Corpus, home: str) -> Iterator[tuple[str, Response, list[Event]]]:
    full: Any = dragoman.dialect(home)
    for recording in corpus.select(provider_api=SPOKEN_BY[home], status=200):
        is_chat = ENDPOINTS[home].search(recording.request_path.partition("?")[0])
        if not is_chat or _FAULTY in recording.row.file:
            continue
        events: list[Event] = []
        decoder = full.stream_decoder()
        if recording.response_stream is not None:
            with suppress(WireError):
                events = decoder.feed(recording.response_stream) + decoder.close()
            response = decoder.response
        elif isinstance(recording.response_body, dict) and not recording.response_body.get("error"):
            response = full.decode_response(recording.response_body)
        else:
            continue
        runs = (ServerToolCall, ServerToolResult)
        if len(response.choices) == 1 and (
            any(isinstance(part, runs) for part in response.message.parts)
            or "groundingMetadata" in str(response.choices[0].extras.keys())
        ):
            yield recording.row.file, response, events


_LEAST = {"anthropic": 20, "gemini": 8, "openai-chat": 3, "openai-responses": 30}


@pytest.mark.corpus
@pytest.mark.parametrize("home", FRONTS)
def test_recorded_calls_through_every_front(corpus: Corpus, home: str) -> None:
    """Each is valid for the client's SDK, plain and streamed, and round-trips."""
    count = 0
    for file, response, events in _recorded(corpus, home):
        count += 1
        runs = [part for part in response.message.parts
                if isinstance(part, (ServerToolCall, ServerToolResult))]  # fmt: skip
        for front in FRONTS:
            if front == home:
                continue
            serving = dragoman.Front(front, request_to(front))
            check_body(front, serving.response(response).to_bytes())
            back = [part for message in returned(front, response) for part in message.parts]
            assert _runs(back) == runs, (file, front)
            if events:
                encoder = dragoman.Front(front, request_to(front)).stream()
                stream = b"".join([encoder.feed(event) for event in events])
                check_stream(front, stream + encoder.close())
                back = [p for m in returned_stream(front, events) for p in m.parts]
                assert len(_runs(back)) == len(runs), (file, front)
            encoded = sent(front, direct(response))
            problems = dragoman.dialect(front).check(encoded.body, path=encoded.path)
            assert not [problem for problem in problems if problem.severity == "error"], file
    assert count >= _LEAST[home]


def _runs(parts: list[Any]) -> list[Any]:
    return [part for part in parts if isinstance(part, (ServerToolCall, ServerToolResult))
            and part.name not in ("groundingMetadata", "urlContextMetadata")]  # fmt: skip
