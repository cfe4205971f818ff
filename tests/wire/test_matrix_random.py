"""Random histories in every dialect: what arrives, what is reported, and who accepts it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.model.content import AnyPart
from dragoman.model.media import File, Image, Media
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.requests import Output, Request, Sampling, ThinkingConfig
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ToolCall,
    ToolChoice,
    ToolResult,
    make_call,
    make_definition,
)
from dragoman.wire.encoded import Encoded
from tests.corpus import Corpus
from tests.model import strategies
from tests.wire.recorded import bodies, has_conversation

JUDGED = [n for n in dragoman.dialects() if hasattr(dragoman.dialect(n), "check")]
TYPED = ("anthropic", "openai-chat")
_PNG, _PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-1.7\n"

_IDS = ("call_1", "toolu_01", "a.b:c/d", "call 7", "é", "x" * 90, "x" * 91, "functions.f:0", "0")
_NAMES = ("look", "mcp.server/look", "look-up", "ns:tool", "n" * 64, "n" * 65, "n" * 130, "ü")
_ORIGINS = st.sampled_from([None, *(Origin(dialect=name) for name in dragoman.dialects())])
_BLANKS = st.sampled_from(["", " ", "\n\t"])
_ARGUMENTS = st.dictionaries(st.sampled_from("abcé"), strategies.json_values, max_size=2)
_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


class _Marks:
    """A unique mark for every part, by which it is found in the output."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self) -> str:
        return f"<mark {next(self._numbers):04}>"


def _coded(start: bytes, mark: str) -> str:
    return b64encode(start + mark.encode()).decode("ascii")


@st.composite
def _texts(draw: st.DrawFn, marks: _Marks) -> Text:
    return Text(draw(strategies.texts) + marks.next())


@st.composite
def _images(draw: st.DrawFn, marks: _Marks) -> Image:
    mark = marks.next()
    if draw(st.booleans()):
        return Image(data=_coded(_PNG, mark), mime=draw(st.sampled_from(["image/png", None])))
    return Image(url=f"https://example.com/{mark[6:10]}.png")


@st.composite
def _files(draw: st.DrawFn, marks: _Marks) -> File:
    name = draw(st.sampled_from(["a.pdf", None]))
    mark = marks.next()
    if draw(st.booleans()):
        return File(data=_coded(_PDF, mark), mime="application/pdf", name=name)
    return File(url=f"https://example.com/{mark[6:10]}.pdf", name=name)


@st.composite
def _thinking(draw: st.DrawFn, marks: _Marks) -> Thinking:
    mark = marks.next()
    origin = draw(_ORIGINS)
    if draw(st.integers(0, 3)) == 0:
        return Thinking("", mark, "redacted", origin=origin)
    # Anthropic's own unsigned thinking round-trips: compatible servers sign none.
    is_signed = origin is None or origin.dialect == "anthropic" or draw(st.booleans())
    return Thinking(mark, signature="c2lnbmVk" if is_signed else None, origin=origin)


def _some(draw: st.DrawFn, one: Callable[[], AnyPart], most: int) -> list[AnyPart]:
    return [one() for _ in range(draw(st.integers(0, most)))]


def _user(draw: st.DrawFn, marks: _Marks) -> Message:
    kinds = draw(st.lists(st.sampled_from(["text", "text", "blank", "image", "file"]), max_size=3))
    made: dict[str, Callable[[], AnyPart]] = {
        "text": lambda: draw(_texts(marks)),
        "blank": lambda: Text(draw(_BLANKS)),
        "image": lambda: draw(_images(marks)),
        "file": lambda: draw(_files(marks)),
    }
    return make_message(Role.USER, tuple(made[kind]() for kind in kinds))


def _called(draw: st.DrawFn, marks: _Marks) -> list[ToolCall]:
    ids = draw(st.lists(st.sampled_from(_IDS), max_size=3, unique=True))
    return [
        make_call(
            tool_id,
            draw(st.sampled_from(_NAMES)),
            input={**draw(_ARGUMENTS), "mark": marks.next()},
        )
        for tool_id in ids
    ]


def _result(draw: st.DrawFn, marks: _Marks, call_id: str) -> ToolResult:
    is_error = draw(st.sampled_from([None, False, True]))
    if draw(st.booleans()):
        return ToolResult(call_id, draw(strategies.texts) + marks.next(), is_error=is_error)
    content = [draw(_texts(marks)), *_some(draw, lambda: draw(_images(marks)), 2)]
    return ToolResult(call_id, tuple(content), is_error=is_error)  # type: ignore[arg-type]


def _turn(draw: st.DrawFn, marks: _Marks) -> Iterator[Message]:
    """A user message, an answer with calls, and results for most of them."""
    if draw(st.integers(0, 4)):
        yield _user(draw, marks)
    if draw(st.integers(0, 5)) == 0:
        role = draw(st.sampled_from([Role.SYSTEM, Role.DEVELOPER]))
        yield Message(role, (draw(_texts(marks)),))
    calls = _called(draw, marks)
    parts: list[AnyPart] = _some(draw, lambda: draw(_thinking(marks)), 1)
    parts += _some(draw, lambda: draw(_texts(marks)), 1)
    if draw(st.integers(0, 4)) == 0:
        parts.append(Text(draw(_BLANKS)))
    yield make_message(Role.ASSISTANT, (*parts, *calls), origin=draw(_ORIGINS))
    ids = draw(st.permutations([c.id for c in calls]))
    ids = [i for i in ids if draw(st.integers(0, 5))]  # the others are never answered
    if draw(st.integers(0, 5)) == 0:
        ids.insert(draw(st.integers(0, len(ids))), "nobody.called")
    results = [_result(draw, marks, call_id) for call_id in ids]
    cut = draw(st.integers(0, len(results)))
    if results[:cut]:
        yield Message(Role.TOOL, tuple(results[:cut]))
    if draw(st.integers(0, 5)) == 0:
        yield _user(draw, marks)
    for result in results[cut:]:
        yield Message(Role.TOOL, (result,))


@st.composite
def histories(draw: st.DrawFn) -> Request:
    """A random request: complete, incomplete, or begun in another dialect."""
    marks = _Marks()
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, 3))):
        messages += _turn(draw, marks)
    messages.append(Message(Role.USER, (draw(_texts(marks)),)))
    names = draw(st.lists(st.sampled_from(_NAMES), max_size=3, unique=True))
    ours = Origin(dialect="openai-chat")  # a name from a wire may be anything
    tools = tuple(make_definition(name, "d", _SCHEMA, origin=ours) for name in names)
    choices = [None, ToolChoice("auto"), ToolChoice("required"), ToolChoice("none")]
    if names:
        choices.append(ToolChoice("named", (names[0],)))
    return Request(
        model="m",
        system=tuple(_some(draw, lambda: draw(_texts(marks)), 2)),
        messages=tuple(messages),
        tools=tools,
        tool_choice=draw(st.sampled_from(choices)) if tools else None,
        sampling=Sampling(
            max_tokens=draw(st.sampled_from([None, 1, 4096])),
            temperature=draw(st.sampled_from([None, 0.0, 0.5, 1, 1.5, 2.0])),
            top_p=draw(st.sampled_from([None, 0.1, 1.0])),
            top_k=draw(st.sampled_from([None, 5])),
            stop=draw(st.sampled_from([(), ("END",), (" ",)])),
            seed=draw(st.sampled_from([None, 7])),
        ),
        thinking=draw(st.sampled_from([
            None, ThinkingConfig(enabled=False), ThinkingConfig(enabled=True),
            ThinkingConfig(effort="low"), ThinkingConfig(enabled=True, budget=2048),
        ])),
        output=draw(st.sampled_from([
            None, Output(format="text"), Output(format="json"),
            Output(format="schema", schema=_SCHEMA, name="s"),
        ])),
        stream=draw(st.sampled_from([None, False, True])),
    )  # fmt: skip


class _Part(NamedTuple):
    path: str
    message: Message
    part: Any


def _parts(request: Request) -> list[_Part]:
    return [
        _Part(f"messages[{i}].parts[{j}]", message, part)
        for i, message in enumerate(request.messages)
        for j, part in enumerate(message.parts)
    ]


def _mark_of(part: Any) -> str:
    """The mark of a part, as found in the encoded bytes."""
    if isinstance(part, Media):
        return str(part.data or part.url)
    if isinstance(part, Thinking):
        return part.data or part.text
    if isinstance(part, ToolCall):
        return str(part.arguments["mark"])
    text = part.text if isinstance(part, (Text, ToolResult)) else ""
    start = text.find("<mark ")
    return text[start : start + len("<mark 0000>")] if start >= 0 else ""


def _arrived(encoded: Encoded, target: str) -> Request:
    return dragoman.dialect(target).decode_request(encoded.to_bytes(), path=encoded.path)


def _pairs(request: Request, names: Mapping[str, str]) -> tuple[list[Any], list[Any]]:
    """The calls, and the results with the marks of their calls."""
    calls, results = list[Any](), list[Any]()
    latest: dict[str, str] = {}
    for found in _parts(request):
        part = found.part
        if isinstance(part, ToolCall):
            latest[part.id] = mark = _mark_of(part)
            calls.append((names.get(part.name, part.name), mark, part.arguments))
        elif isinstance(part, ToolResult) and part.call_id in latest and _mark_of(part):
            results.append((latest[part.call_id], _mark_of(part)))
    return calls, sorted(results)


def _strays(request: Request) -> set[str]:
    """The marks of results without a call in the conversation."""
    called = {found.part.id for found in _parts(request) if isinstance(found.part, ToolCall)}
    return {
        _mark_of(found.part)
        for found in _parts(request)
        if isinstance(found.part, ToolResult) and found.part.call_id not in called
    }


def touched(request: Request, dialect: str) -> Request:
    """The request, with no message that counts as an unchanged one of the dialect.

    Unchanged messages may keep whatever no host was observed to refuse.
    """
    owns = dragoman.dialect(dialect).target.owns
    return request.replace(
        messages=tuple(
            message.replace_unchecked(origin=None) if owns(message) else message
            for message in request.messages
        )
    )


@pytest.mark.parametrize("target", dragoman.dialects())
@given(request=histories())
def test_encoding_is_total_and_deterministic(target: str, request: Request) -> None:
    """Every history can be encoded, with the same result each time."""
    speaker = dragoman.dialect(target)
    assert speaker.encode_request(request).to_bytes() == speaker.encode_request(request).to_bytes()


@pytest.mark.parametrize("target", JUDGED)
@given(request=histories())
def test_encoded_requests_break_no_rule(target: str, request: Request) -> None:
    """Even incomplete histories pass the target's own rules after encoding."""
    speaker: Any = dragoman.dialect(target)
    body = speaker.encode_request(touched(request, target), speaker.target).body
    assert [v for v in speaker.check(body) if v.severity == "error"] == []


@pytest.mark.parametrize("target", JUDGED)
@given(request=histories())
def test_texts_calls_and_results_arrive(target: str, request: Request) -> None:
    """Every text, call and result is in the body, and results belong to the same calls."""
    speaker = dragoman.dialect(target)
    request = touched(request, target)
    encoded = speaker.encode_request(request, speaker.target)
    arrived = _arrived(encoded, target)
    heard = "\n".join(
        part.text for part in (*arrived.system, *(p.part for p in _parts(arrived)))
        if isinstance(part, Text)
    )  # fmt: skip
    for part in (*request.system, *(found.part for found in _parts(request))):
        if isinstance(part, Text) and part.text.strip():
            assert part.text in heard
    calls, results = _pairs(arrived, encoded.context.names)
    assert calls == _pairs(request, {})[0]
    known = _pairs(request, {})[1]
    # An orphaned result may be matched with an open call by its position: that is reported.
    assert {*known} <= {*results}
    assert {mark for pair in {*results} - {*known} for mark in pair[1:]} <= _strays(request)


@pytest.mark.parametrize("target", JUDGED)
@given(request=histories())
def test_missing_parts_are_reported(target: str, request: Request) -> None:
    """A missing part is named by a loss; an unchanged part is not."""
    speaker = dragoman.dialect(target)
    encoded = speaker.encode_request(request, speaker.target)
    sent = encoded.to_bytes().decode("utf-8")
    named = {loss.path for loss in encoded.losses}
    marks = Counter(_mark_of(part) for _, _, part in _parts(request))  # some parts are equal
    for path, _, part in _parts(request):
        mark = _mark_of(part)
        if mark and mark not in sent:
            assert any(path == name or name == path.rpartition(".")[0] for name in named), path
        elif isinstance(part, (Text, ToolCall, Thinking, Media)) and marks[mark] == 1:
            assert path not in named
        for place, inner in enumerate(part.content if isinstance(part, ToolResult) else ()):
            if not isinstance(inner, str) and mark in sent:
                # Media may be moved elsewhere, which is reported too (W1).
                assert _mark_of(inner) in sent or f"{path}.content[{place}]" in named


@cache
def _adapter(target: str) -> Any:
    pydantic = pytest.importorskip("pydantic")
    if target == "anthropic":
        types = pytest.importorskip("anthropic.types.message_create_params")
        return pydantic.TypeAdapter(types.MessageCreateParams)
    types = pytest.importorskip("openai.types.chat.completion_create_params")
    return pydantic.TypeAdapter(types.CompletionCreateParams)


def _accepted(target: str, body: Mapping[str, Any]) -> None:
    """Raise if the SDK's types refuse the body; `Iterable`s are checked when read."""
    plain = json.loads(json.dumps(body, default=dict))
    if "tools" in plain:  # MCP servers are under a beta header, and in the SDK's beta types only
        plain["tools"] = [tool for tool in plain["tools"] if tool.get("type") != "mcp_toolset"]
    exhausted(_adapter(target).validate_python(plain))


def exhausted(value: Any) -> None:
    """Reads an `Iterable` and all in it, which validates them."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for item in value:
            exhausted(item)


@pytest.mark.parametrize("target", TYPED)
@given(request=histories())
def test_the_sdk_s_types_accept_encoded_requests(target: str, request: Request) -> None:
    """Encoded requests match the vendors' own request types."""
    _accepted(target, dragoman.dialect(target).encode_request(request).body)


@pytest.mark.corpus
@pytest.mark.parametrize("target", TYPED)
@pytest.mark.parametrize("source", dragoman.dialects())
def test_the_sdk_s_types_accept_recorded_histories(
    corpus: Corpus, source: str, target: str
) -> None:
    """So do recorded requests that were translated from another dialect."""
    if source == target:
        return  # fields of compatible hosts are kept
    _adapter(target)  # skips without the SDK
    refused = []
    for body in bodies(corpus, source, "core"):
        request = body.decode()
        if isinstance(request, Request) and has_conversation(request, target):
            encoded = dragoman.dialect(target).encode_request(request)
            try:
                _accepted(target, {"model": "m", **encoded.body})
            except ValueError as error:
                refused.append((body.recording.row.file, str(error).partition("\n")[2][:200]))
    assert refused == []
