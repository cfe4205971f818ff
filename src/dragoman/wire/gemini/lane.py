"""Plain conversations: contents of texts, `functionCall` and `functionResponse` parts."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.call_ids import CallIds
from dragoman.wire.envelope import PREFIX
from dragoman.wire.gemini.dialect import STAND_INS
from dragoman.wire.gemini.tools_calls import holds_references
from dragoman.wire.lane.plain import (
    SIGNED_CALL,
    SIGNED_TEXT,
    SPELLED,
    SPELLED_ANSWER,
    SPELLED_CALL,
    SPELLED_RESULT,
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
    Picture,
    Result,
    Text,
    Turns,
    User,
    UserBesideResults,
    arguments_of,
    check_depth,
    encode,
    inline,
    inlined,
    text_or_texts,
)


class _Called(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    id: str | UnsetType = UNSET
    args: dict[str, Any] | UnsetType = UNSET


class _Blob(Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    mime_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: str


class _Link(Struct, gc=False, rename="camel"):
    file_uri: str


class _Output(Struct, forbid_unknown_fields=True, gc=False):
    output: str


class _Error(Struct, gc=False):
    error: str


class _Answered(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    response: Any
    id: str | UnsetType = UNSET


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    text: str | UnsetType = UNSET
    function_call: _Called | UnsetType = UNSET
    function_response: _Answered | UnsetType = UNSET
    inline_data: _Blob | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET


class _TextPart(Struct, gc=False):
    """As `_Part`, for writing: faster."""

    text: str


class _CallPart(Struct, gc=False, rename="camel"):
    function_call: _Called


class _ResponsePart(Struct, gc=False, rename="camel"):
    function_response: _Answered


class _BlobPart(Struct, gc=False, rename="camel"):
    inline_data: _Blob


class _LinkPart(Struct, gc=False, rename="camel"):
    file_data: _Link


class _FromUser(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


class _FromModel(Struct, tag_field="role", tag="model", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


_decode = Decoder(list[_FromUser | _FromModel]).decode


def _read(raw: Raw) -> tuple[Turns, Marks]:
    turns: Turns = []
    marks: list[Mark] = []
    calls, names = CallIds(), Names()
    was_model = False
    for number, content in enumerate(_decode(raw)):
        is_model = type(content) is _FromModel
        if is_model and not was_model:
            calls.begin_step()
        was_model = is_model
        calls.at(number)
        if is_model:
            turns.append(_read_answer(content.parts, calls, names, number, marks))
        else:
            _read_user(content.parts, calls, names, turns, number, marks)
    if calls.has_clashed:
        raise NotPlain
    return turns, marks


def _read_answer(
    parts: list[_Part], ids: CallIds, names: Names, number: int, marks: list[Mark]
) -> Assistant:
    """Thinking, texts, and calls, in this order."""
    texts: list[str] = []
    calls: list[Call] = []
    spelled: list[Mark] = []
    thoughts = 0
    for place, part in enumerate(parts):
        called, text = part.function_call, part.text
        _check_said_by_model(part)
        if type(called) is _Called:
            calls.append(_read_call(called, ids, names))
            if called.id is UNSET or part.thought is False:
                spelled.append((SPELLED_CALL, number, place))
        elif type(text) is not str or calls:
            raise NotPlain
        elif part.thought is True:
            if texts or not text or part.thought_signature is not UNSET:
                raise NotPlain
            thoughts += 1
        else:
            texts.append(text)
            if part.thought is False:
                spelled.append((SPELLED_ANSWER, number, place))
        if part.thought_signature is not UNSET:
            spelled.append((_signed(part), number, place))
    if thoughts:
        kind = THINKING_BEFORE_CALLS if calls else THINKING_BEFORE_TEXT
        marks += [(kind, number, place) for place in range(thoughts)]
    marks += spelled
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


def _check_said_by_model(part: _Part) -> None:
    """Raise where a part is neither a text nor a call, or both."""
    if part.function_response is not UNSET or part.inline_data is not UNSET:
        raise NotPlain
    if part.function_call is not UNSET and (part.text is not UNSET or part.thought is True):
        raise NotPlain


def _signed(part: _Part) -> int:
    """What a signature is on; raises where it is a word of the API's, an envelope, or empty."""
    signature: Any = part.thought_signature
    if not signature or signature in STAND_INS or signature.startswith(PREFIX):
        raise NotPlain
    return SIGNED_TEXT if part.function_call is UNSET else SIGNED_CALL


def _read_call(called: _Called, ids: CallIds, names: Names) -> Call:
    if type(called.args) is not dict:
        raise NotPlain
    given = called.id if type(called.id) is str else None
    call_id, _ = ids.add_named_call(called.name, given, called.args)
    names[call_id] = called.name
    return Call(call_id, "function", Function(called.name, encode(called.args).decode()))


def _read_user(
    parts: list[_Part], ids: CallIds, names: Names, turns: Turns, number: int, marks: list[Mark]
) -> None:
    """Results, which come first, texts and pictures."""
    said: list[Text | Picture] = []
    for place, part in enumerate(parts):
        answered = part.function_response
        if type(answered) is not _Answered:
            said.append(_read_said(part))
            if part.thought is not UNSET:
                marks.append((SPELLED_USER, number, place))
            continue
        if said or not _has_one(part) or part.thought is True:
            raise NotPlain
        turns.append(_read_result(answered, ids, names))
        if answered.id is UNSET or part.thought is False:
            marks.append((SPELLED_RESULT, number, place))
    if said:
        turns.append(UserBesideResults(said) if len(said) < len(parts) else User(said))
    elif not parts:
        raise NotPlain


def _has_one(part: _Part) -> bool:
    """Whether a part of a user's is one thing, without a signature."""
    if part.function_call is not UNSET or part.thought_signature is not UNSET:
        return False
    things = (part.text, part.inline_data, part.function_response)
    return sum(thing is not UNSET for thing in things) == 1


def _read_said(part: _Part) -> Text | Picture:
    """A text, which may say that it is no thought, or a picture."""
    text, blob = part.text, part.inline_data
    if part.thought is True or not _has_one(part):
        raise NotPlain
    if type(text) is str:
        return Text(text)
    if type(blob) is _Blob and part.thought is UNSET:
        return inlined(blob.mime_type, blob.data)
    raise NotPlain


def _read_result(answered: _Answered, ids: CallIds, names: Names) -> Result:
    response = answered.response
    given = answered.id or None
    call_id, wire_id = ids.answer_named(answered.name, given)
    if names.get(call_id) != answered.name or wire_id != given:
        raise NotPlain
    if type(response) is not dict or response.get("error") is not None:
        raise NotPlain
    if len(response) == 1 and "output" in response:
        if type(response["output"]) is not str:
            raise NotPlain
        return Result(call_id, response["output"])
    if not response or holds_references(response):
        raise NotPlain
    text = encode(response).decode()
    check_depth(text)
    return Result(call_id, text)


def _write(turns: list[Any], names: Names) -> list[Any]:
    items: list[Any] = []
    results: list[Any] = []
    """Those of the round that is being written, which are one content (W78)."""
    for turn in turns:
        kind, content = type(turn), turn.content
        if kind is Result or kind is FailedResult:
            if not results:
                items.append(_FromUser(results))
            called = turn.tool_call_id
            output = _Output(content) if kind is Result else _Error(content)
            results.append(_ResponsePart(_Answered(names[called], output, called)))
            continue
        if kind is UserBesideResults:
            results += _texts(content)
            results = []
            continue
        results = []
        parts: list[Any] = [_TextPart(content)] if type(content) is str else _texts(content)
        if kind is User:
            items.append(_FromUser(parts))
        elif kind is Assistant:
            for call in turn.tool_calls or ():
                name = call.function.name
                parts.append(_CallPart(_Called(name, call.id, arguments_of(call))))
            items.append(_FromModel(parts))
        else:
            raise NotPlain
    return items


def _texts(content: Any) -> list[Any]:
    if type(content) is str:
        return [_TextPart(content)]
    return list(map(_written_part, content)) if type(content) is list else []


def _written_part(part: Text | Picture) -> Any:
    if isinstance(part, Text):
        return _TextPart(part.text)
    found = inline(part)
    if found is None:
        return _LinkPart(_Link(part.image_url.url))
    return _BlobPart(_Blob(*found))  # type: ignore[arg-type]  # one of these types


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, place = mark
    parts = items[number]["parts"]
    if kind in (THINKING_BEFORE_TEXT, THINKING_BEFORE_CALLS):
        parts.insert(0, {"text": "1", "thought": True})
    elif kind in (SIGNED_TEXT, SIGNED_CALL):
        parts[place]["thoughtSignature"] = "MQ=="
    elif kind & SPELLED:
        parts[place]["thought"] = False
        if kind == SPELLED_RESULT:
            _leave_out_id(parts[place]["functionResponse"].pop("id"), items[:number])
    else:
        raise NotPlain


def _leave_out_id(call_id: str, items: list[Any]) -> None:
    for item in items:
        for part in item["parts"]:
            if part.get("functionCall", {}).get("id") == call_id:
                del part["functionCall"]["id"]


LANE = Lane(
    "contents",
    _read,
    _write,
    _mark,
    groups_results=True,
    shows_calls=True,
    reads_arguments=True,
    has_places=True,
)
