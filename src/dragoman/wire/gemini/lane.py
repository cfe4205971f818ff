"""Plain conversations: contents of texts, `functionCall` and `functionResponse` parts."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.lane.plain import (
    Assistant,
    Call,
    Function,
    Lane,
    Names,
    NotPlain,
    Result,
    Text,
    Turns,
    User,
    UserBesideResults,
    arguments_of,
    encode,
    text_or_texts,
)


class _Called(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    id: str
    args: dict[str, Any]


class _Output(Struct, forbid_unknown_fields=True, gc=False):
    output: str


class _Answered(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    response: _Output
    id: str


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    text: str | UnsetType = UNSET
    function_call: _Called | UnsetType = UNSET
    function_response: _Answered | UnsetType = UNSET


class _TextPart(Struct, gc=False):
    """As `_Part`, for writing: faster."""

    text: str


class _CallPart(Struct, gc=False, rename="camel"):
    function_call: _Called


class _ResponsePart(Struct, gc=False, rename="camel"):
    function_response: _Answered


class _FromUser(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


class _FromModel(Struct, tag_field="role", tag="model", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


_decode = Decoder(list[_FromUser | _FromModel]).decode


def _read(raw: Raw) -> Turns:
    turns: Turns = []
    names: Names = {}
    for content in _decode(raw):
        if type(content) is _FromModel:
            turns.append(_read_answer(content.parts, names))
        else:
            _read_user(content.parts, names, turns)
    return turns


def _read_answer(parts: list[_Part], names: Names) -> Assistant:
    texts: list[str] = []
    calls: list[Call] = []
    for part in parts:
        called = part.function_call
        if type(part.text) is str and called is UNSET and part.function_response is UNSET:
            if calls:
                raise NotPlain
            texts.append(part.text)
        elif type(called) is _Called and part.text is UNSET and part.function_response is UNSET:
            arguments = encode(called.args).decode()
            calls.append(Call(called.id, "function", Function(called.name, arguments)))
            names[called.id] = called.name
        else:
            raise NotPlain
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


def _read_user(parts: list[_Part], names: Names, turns: Turns) -> None:
    texts: list[Text] = []
    has_results = False
    for part in parts:
        answered = part.function_response
        if part.function_call is not UNSET or (part.text is UNSET) == (answered is UNSET):
            raise NotPlain
        if type(answered) is not _Answered:
            texts.append(Text(part.text))  # type: ignore[arg-type]  # a text: it is set
        elif texts or names.get(answered.id) != answered.name:
            raise NotPlain
        else:
            has_results = True
            turns.append(Result(answered.id, answered.response.output))
    if texts:
        turns.append(UserBesideResults(texts) if has_results else User(texts))
    elif not has_results:
        raise NotPlain


def _write(turns: Turns, names: Names) -> list[Any]:
    items: list[Any] = []
    results: list[Any] = []
    """Those of the round that is being written, which are one content (W78)."""
    for turn in turns:
        kind, content = type(turn), turn.content
        if kind is Result:
            if not results:
                items.append(_FromUser(results))
            called = turn.tool_call_id  # type: ignore[union-attr]  # a Result
            results.append(_ResponsePart(_Answered(names[called], _Output(content), called)))  # type: ignore[arg-type]  # a text
            continue
        if kind is UserBesideResults:
            results += _texts(content)
            results = []
            continue
        results = []
        parts = [_TextPart(content)] if type(content) is str else _texts(content)
        if kind is User:
            items.append(_FromUser(parts))
        elif kind is Assistant:
            for call in turn.tool_calls or ():  # type: ignore[union-attr]  # an Assistant
                called = _Called(call.function.name, call.id, arguments_of(call))
                parts.append(_CallPart(called))
            items.append(_FromModel(parts))
        else:
            raise NotPlain
    return items


def _texts(content: Any) -> list[Any]:
    if type(content) is str:
        return [_TextPart(content)]
    return [_TextPart(text.text) for text in content] if type(content) is list else []


LANE = Lane("contents", _read, _write)
