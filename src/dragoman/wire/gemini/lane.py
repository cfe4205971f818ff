"""Fast path for plain conversations: text, media, function call and response parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from dragoman.wire.call_ids import CallIds
from dragoman.wire.envelope import PREFIX
from dragoman.wire.gemini.dialect import SENTINEL, STAND_INS
from dragoman.wire.gemini.tables import holds_references
from dragoman.wire.lane.attachments import attachment, inlined, linked
from dragoman.wire.lane.plain import (
    ATTACHED,
    FAILED_RESULT,
    SIGNED_CALL,
    SIGNED_TEXT,
    SPELLED,
    SPELLED_ANSWER,
    SPELLED_CALL,
    SPELLED_OTHERWISE,
    SPELLED_RESULT,
    SPELLED_USER,
    SUMMARY_BEFORE_CALLS,
    SUMMARY_BEFORE_TEXT,
    THINKING,
    THINKING_BEFORE_CALLS,
    THINKING_BEFORE_TEXT,
    UNSIGNED_CALL,
    Assistant,
    Attachment,
    Call,
    FailedResult,
    Function,
    Json,
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
    check_depth,
    encode,
    text_or_texts,
)


class _FunctionCall(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    args: dict[str, Any] | UnsetType = UNSET
    id: str | UnsetType = UNSET


class _Blob(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    mime_type: str
    data: str
    display_name: str | UnsetType = UNSET


class _Link(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    file_uri: str
    mime_type: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET


class _Output(Struct, forbid_unknown_fields=True, gc=False):
    output: str


class _Error(Struct, gc=False):
    error: str


class _FunctionResponse(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    response: Any
    id: str | UnsetType = UNSET


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, rename="camel"):
    text: str | UnsetType = UNSET
    function_call: _FunctionCall | UnsetType = UNSET
    function_response: _FunctionResponse | UnsetType = UNSET
    inline_data: _Blob | UnsetType = UNSET
    file_data: _Link | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET


class _TextPart(Struct, gc=False):
    """Like `_Part`, but faster to encode."""

    text: str


class _CallPart(Struct, gc=False, rename="camel"):
    function_call: _FunctionCall


class _SignedCallPart(Struct, gc=False, rename="camel"):
    function_call: _FunctionCall
    thought_signature: str


class _ResponsePart(Struct, gc=False, rename="camel"):
    function_response: _FunctionResponse


class _UserContent(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


class _ModelContent(Struct, tag_field="role", tag="model", forbid_unknown_fields=True, gc=False):
    parts: list[_Part]


# --- snake_case variants, which Python clients may send


class _SnakeBlob(_Blob, gc=False, rename={}):
    mime_type: str
    display_name: str | UnsetType = UNSET


class _SnakeLink(_Link, gc=False, rename={}):
    file_uri: str
    mime_type: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET


class _SnakePart(_Part, gc=False, rename={}):
    function_call: _FunctionCall | UnsetType = UNSET
    function_response: _FunctionResponse | UnsetType = UNSET
    inline_data: _SnakeBlob | UnsetType = UNSET  # pyright: ignore[reportIncompatibleVariableOverride]
    file_data: _SnakeLink | UnsetType = UNSET  # pyright: ignore[reportIncompatibleVariableOverride]
    thought_signature: str | UnsetType = UNSET


class _SnakeUserContent(_UserContent, tag="user", gc=False):
    parts: list[_SnakePart]  # type: ignore[assignment]  # read only


class _SnakeModelContent(_ModelContent, tag="model", gc=False):
    parts: list[_SnakePart]  # type: ignore[assignment]  # read only


_decode = Decoder(list[_UserContent | _ModelContent]).decode
_decode_snake = Decoder(list[_SnakeUserContent | _SnakeModelContent]).decode


def _messages(raw: Json) -> tuple[Sequence[_UserContent | _ModelContent], list[Mark]]:
    try:
        return _decode(raw), []
    except ValidationError as odd:
        if "_" not in str(odd):
            raise
        try:
            return _decode_snake(raw), [(SPELLED_OTHERWISE, 0, 0)]
        except ValidationError:
            raise odd from None


def _read(raw: Json) -> tuple[Turns, Marks]:
    turns: Turns = []
    messages, marks = _messages(raw)
    calls, names = CallIds(), Names()
    was_model = False
    for number, content in enumerate(messages):
        is_model = isinstance(content, _ModelContent)
        if is_model and not was_model:
            calls.begin_step()
        was_model = is_model
        calls.at(number)
        if is_model:
            turns.append(_read_model(content.parts, calls, names, number, marks))
        elif len(content.parts) == 1 and _is_text(content.parts[0]):
            turns.append(User(content.parts[0].text))  # type: ignore[arg-type]  # a str
        else:
            _read_user(content.parts, calls, names, turns, number, marks)
    if calls.has_clashed:
        raise NotPlain
    if marks and any(kind == SIGNED_CALL for kind, _, _ in marks):
        marks += _unsigned(messages)
    return turns, marks


def _unsigned(messages: Sequence[_UserContent | _ModelContent]) -> list[Mark]:
    """The unsigned calls that are the first of their message."""
    found: list[Mark] = []
    for number, message in enumerate(messages):
        places = (n for n, part in enumerate(message.parts) if part.function_call is not UNSET)
        first = next(places, None)
        if first is not None and message.parts[first].thought_signature is UNSET:
            found.append((UNSIGNED_CALL, number, first))
    return found


def _read_model(
    parts: list[_Part], ids: CallIds, names: Names, number: int, marks: list[Mark]
) -> Assistant:
    """Read thinking, texts and calls, in this order."""
    texts: list[str] = []
    calls: list[Call] = []
    spelled: list[Mark] = []
    thoughts: list[bool] = []
    """Whether each thinking part is signed."""
    for place, part in enumerate(parts):
        called, text = part.function_call, part.text
        _check_model_part(part)
        if type(called) is _FunctionCall:
            calls.append(_read_call(called, ids, names))
            if called.id is UNSET or part.thought is False:
                spelled.append((SPELLED_CALL, number, place))
        elif type(text) is not str or calls:
            raise NotPlain
        elif part.thought is True:
            if texts or not text:
                raise NotPlain
            thoughts.append(part.thought_signature is not UNSET and bool(_signature_mark(part)))
            continue
        else:
            texts.append(text)
            if part.thought is False:
                spelled.append((SPELLED_ANSWER, number, place))
        if part.thought_signature is not UNSET:
            spelled.append((_signature_mark(part), number, place))
    if thoughts:
        kinds = _BEFORE_CALLS if calls else _BEFORE_TEXT
        marks += [(kinds[is_signed], number, place) for place, is_signed in enumerate(thoughts)]
    marks += spelled
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


_BEFORE_TEXT = {False: THINKING_BEFORE_TEXT, True: SUMMARY_BEFORE_TEXT}
_BEFORE_CALLS = {False: THINKING_BEFORE_CALLS, True: SUMMARY_BEFORE_CALLS}


def _check_model_part(part: _Part) -> None:
    """Raise `NotPlain` unless a part is either a text or a call."""
    if not (part.function_response is part.inline_data is part.file_data is UNSET):
        raise NotPlain
    if part.function_call is not UNSET and (part.text is not UNSET or part.thought is True):
        raise NotPlain


def _signature_mark(part: _Part) -> int:
    """The mark for a signed part; raises for a placeholder, our envelope or an empty signature."""
    signature: Any = part.thought_signature
    if not signature or signature in STAND_INS or signature.startswith(PREFIX):
        raise NotPlain
    return SIGNED_TEXT if part.function_call is UNSET else SIGNED_CALL


def _read_call(called: _FunctionCall, ids: CallIds, names: Names) -> Call:
    if type(called.args) is not dict:
        raise NotPlain
    given = called.id if type(called.id) is str else None
    call_id, _ = ids.add_named_call(called.name, given, called.args)
    names[call_id] = called.name
    return Call(call_id, "function", Function(called.name, encode(called.args).decode()))


def _read_user(
    parts: list[_Part], ids: CallIds, names: Names, turns: Turns, number: int, marks: list[Mark]
) -> None:
    """Read tool results, which come first, texts and attachments."""
    content: list[Text | Attachment] = []
    for place, part in enumerate(parts):
        answered = part.function_response
        if type(answered) is not _FunctionResponse:
            content.append(_read_user_part(part))
            if part.text is UNSET:
                marks.append((ATTACHED, number, place))
            elif part.thought is not UNSET:
                marks.append((SPELLED_USER, number, place))
            continue
        if content or not _has_one_data_field(part) or part.thought is True:
            raise NotPlain
        if not place and turns and type(turns[-1]) is not Assistant:
            raise NotPlain  # results of one round in two contents (W78)
        result = _read_result(answered, ids, names)
        turns.append(result)
        kind = _kind_of_result(result, is_spelled=answered.id is UNSET or part.thought is False)
        if kind:
            marks.append((kind, number, place))
    if content:
        turns.append(UserBesideResults(content) if len(content) < len(parts) else User(content))
    elif not parts:
        raise NotPlain


def _kind_of_result(result: Result, *, is_spelled: bool) -> int:
    if type(result) is not FailedResult:
        return SPELLED_RESULT if is_spelled else 0
    if is_spelled:
        raise NotPlain  # only one mark per part
    return FAILED_RESULT


def _is_text(part: _Part) -> bool:
    """Whether a part has a text and nothing else."""
    return part.text is not UNSET and (
        part.function_call is part.function_response is part.inline_data is part.file_data is UNSET
        and part.thought is part.thought_signature is UNSET
    )


def _has_one_data_field(part: _Part) -> bool:
    """Whether a user part has exactly one data field and no signature."""
    if part.function_call is not UNSET or part.thought_signature is not UNSET:
        return False
    things = (part.text, part.inline_data, part.file_data, part.function_response)
    return things.count(UNSET) == len(things) - 1


def _read_user_part(part: _Part) -> Text | Attachment:
    """Read a text (possibly with `thought: false`) or an attachment."""
    text, blob, link = part.text, part.inline_data, part.file_data
    if part.thought is True or not _has_one_data_field(part):
        raise NotPlain
    if type(text) is str:
        return Text(text)
    if isinstance(blob, _Blob):
        sample = inlined(blob.data)
        shown = _Part(inline_data=_Blob(blob.mime_type, sample, blob.display_name))
        return attachment(_with_thought_field(shown, part), sample, blob.data)
    if isinstance(link, _Link):
        sample = linked(link.file_uri)
        shown = _Part(file_data=_Link(sample, link.mime_type, link.display_name))
        return attachment(_with_thought_field(shown, part), sample, link.file_uri)
    raise NotPlain


def _with_thought_field(shown: _Part, part: _Part) -> _Part:
    """A sample part with the original's `thought` field."""
    shown.thought = part.thought
    return shown


def _read_result(answered: _FunctionResponse, ids: CallIds, names: Names) -> Result:
    response = answered.response
    given = answered.id or None
    call_id, wire_id = ids.answer_named(answered.name, given)
    if names.get(call_id) != answered.name or wire_id != given:
        raise NotPlain
    if type(response) is not dict:
        raise NotPlain
    error = response.get("error")
    if error is not None:
        if len(response) > 1 or type(error) is not str or not error:
            raise NotPlain
        return FailedResult(call_id, error)
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
    """Results of the current round, which form one content (W78)."""
    for turn in turns:
        kind, content = type(turn), turn.content
        if kind is Result or kind is FailedResult:
            if not results:
                items.append(_UserContent(results))
            called = turn.tool_call_id
            output = _Output(content) if kind is Result else _Error(content)
            results.append(_ResponsePart(_FunctionResponse(names[called], output, called)))
            continue
        if kind is UserBesideResults:
            results += _texts(content)
            results = []
            continue
        results = []
        parts: list[Any] = [_TextPart(content)] if type(content) is str else _texts(content)
        if kind is User:
            items.append(_UserContent(parts))
        elif kind is Assistant:
            for call in turn.tool_calls or ():
                name = call.function.name
                parts.append(_CallPart(_FunctionCall(name, arguments_of(call), call.id)))
            items.append(_ModelContent(parts))
        else:
            raise NotPlain
    return items


def _add_sentinels(items: list[Any]) -> None:
    """Put a sentinel signature on the first call of each step of the current turn (W83).

    Raises `NotPlain` if the steps are ambiguous.
    """
    after: type[Any] | None = None
    for number in range(len(items) - 1, -1, -1):
        item = items[number]
        if type(item) is after:
            raise NotPlain  # two in a row might be merged
        after = type(item)
        kinds = [type(part) for part in item.parts]
        if after is _ModelContent and _CallPart in kinds:
            first = kinds.index(_CallPart)
            item.parts[first] = _SignedCallPart(item.parts[first].function_call, SENTINEL)
        elif after is _UserContent and _ResponsePart not in kinds:
            if number and type(items[number - 1]) is _UserContent:
                raise NotPlain
            return
        elif after is _UserContent and kinds[-1] is not _ResponsePart:
            raise NotPlain  # the text might begin a new turn
    raise NotPlain


def _texts(content: Any) -> list[Any]:
    if type(content) is str:
        return [_TextPart(content)]
    if type(content) is not list:
        return []
    return [_TextPart(part.text) if type(part) is Text else part for part in content]


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, place = mark
    parts = items[number]["parts"]
    if kind & THINKING:
        signed = {"thoughtSignature": "MQ=="} if kind in _SIGNED_THOUGHTS else {}
        parts.insert(place, {"text": "1", "thought": True, **signed})
    elif kind in (SIGNED_TEXT, SIGNED_CALL):
        parts[place]["thoughtSignature"] = "MQ=="
    elif kind == FAILED_RESULT:
        pass  # `_write` already handles it
    elif kind & SPELLED:
        parts[place]["thought"] = False
        if kind == SPELLED_RESULT:
            _leave_out_id(parts[place]["functionResponse"].pop("id"), items[:number])
    else:
        raise NotPlain


_SIGNED_THOUGHTS = (SUMMARY_BEFORE_TEXT, SUMMARY_BEFORE_CALLS)


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
    labels=frozenset(("labels",)),
    vouch=_add_sentinels,
)
