"""Plain conversations: contents of texts, `functionCall` and `functionResponse` parts."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.lane.plain import (
    SIGNED_CALL,
    SIGNED_TEXT,
    SPELLED_ANSWER,
    SPELLED_USER,
    THINKING_BEFORE_CALLS,
    THINKING_BEFORE_TEXT,
    Assistant,
    Call,
    FailedResult,
    Function,
    Lane,
    Mark,
    Marks,
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


class _Error(Struct, gc=False):
    error: str


class _Answered(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    response: Any
    id: str


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    text: str | UnsetType = UNSET
    function_call: _Called | UnsetType = UNSET
    function_response: _Answered | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET


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


def _read(raw: Raw) -> tuple[Turns, Marks]:
    turns: Turns = []
    marks: list[Mark] = []
    names: Names = {}
    for number, content in enumerate(_decode(raw)):
        if type(content) is _FromModel:
            turns.append(_read_answer(content.parts, names, number, marks))
        else:
            _read_user(content.parts, names, turns, number, marks)
    return turns, marks


def _read_answer(parts: list[_Part], names: Names, number: int, marks: list[Mark]) -> Assistant:
    texts: list[str] = []
    calls: list[Call] = []
    signed: list[Mark] = []
    thoughts = 0
    for place, part in enumerate(parts):
        called, is_signed = part.function_call, part.thought_signature is not UNSET
        if part.function_response is not UNSET or (part.text is UNSET) == (called is UNSET):
            raise NotPlain
        if type(called) is _Called:
            if part.thought is not UNSET:
                raise NotPlain
            arguments = encode(called.args).decode()
            calls.append(Call(called.id, "function", Function(called.name, arguments)))
            names[called.id] = called.name
        elif part.thought is True:
            if texts or calls or is_signed or not part.text:
                raise NotPlain
            thoughts += 1
        elif calls:
            raise NotPlain
        else:
            texts.append(part.text)  # type: ignore[arg-type]  # a text: it is set
            if part.thought is False:
                signed.append((SPELLED_ANSWER, number, place))
        if is_signed:
            if not part.thought_signature:
                raise NotPlain
            signed.append((SIGNED_TEXT if called is UNSET else SIGNED_CALL, number, place))
    if thoughts:
        kind = THINKING_BEFORE_CALLS if calls else THINKING_BEFORE_TEXT
        marks += [(kind, number, place) for place in range(thoughts)]
    marks += signed
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


def _read_user(
    parts: list[_Part], names: Names, turns: Turns, number: int, marks: list[Mark]
) -> None:
    texts: list[Text] = []
    for place, part in enumerate(parts):
        answered = part.function_response
        if part.function_call is not UNSET or (part.text is UNSET) == (answered is UNSET):
            raise NotPlain
        if part.thought_signature is not UNSET or part.thought is True:
            raise NotPlain
        if type(answered) is not _Answered:
            texts.append(Text(part.text))  # type: ignore[arg-type]  # a text: it is set
            if part.thought is False:
                marks.append((SPELLED_USER, number, place))
        elif texts or names.get(answered.id) != answered.name or part.thought is not UNSET:
            raise NotPlain
        else:
            turns.append(_read_result(answered))
    if texts:
        turns.append(UserBesideResults(texts) if len(texts) < len(parts) else User(texts))
    elif not parts:
        raise NotPlain


def _read_result(answered: _Answered) -> Result:
    response = answered.response
    if type(response) is not dict or len(response) != 1:
        raise NotPlain
    output = response.get("output")
    if type(output) is not str:
        raise NotPlain
    return Result(answered.id, output)


def _write(turns: Turns, names: Names) -> list[Any]:
    items: list[Any] = []
    results: list[Any] = []
    """Those of the round that is being written, which are one content (W78)."""
    for turn in turns:
        kind, content = type(turn), turn.content
        if kind is Result or kind is FailedResult:
            if not results:
                items.append(_FromUser(results))
            called = turn.tool_call_id  # type: ignore[union-attr]  # a Result
            output = _Output(content) if kind is Result else _Error(content)  # type: ignore[arg-type]  # a text
            results.append(_ResponsePart(_Answered(names[called], output, called)))
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


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, place = mark
    parts = items[number]["parts"]
    if kind in (THINKING_BEFORE_TEXT, THINKING_BEFORE_CALLS):
        parts.insert(0, {"text": "1", "thought": True})
    elif kind in (SIGNED_TEXT, SIGNED_CALL):
        parts[place]["thoughtSignature"] = "MQ=="
    elif kind in (SPELLED_USER, SPELLED_ANSWER):
        parts[place]["thought"] = False
    else:
        raise NotPlain


LANE = Lane("contents", _read, _write, _mark, groups_results=True)
