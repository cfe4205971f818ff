"""Fast path for plain conversations, whose internal form is that of this dialect."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from dragoman.wire.envelope import PREFIX as ENVELOPE
from dragoman.wire.lane.attachments import addressed, attachment, inlined, linked, worded
from dragoman.wire.lane.plain import (
    ATTACHED,
    CACHED_CALL,
    CACHED_USER,
    EMPTY_BEFORE_CALLS,
    NAMED_RESULT,
    NAMED_USER,
    PREFIX,
    SPELLED_ANSWER,
    SPELLED_CALL,
    STORED_BEFORE_CALLS,
    STORED_BEFORE_TEXT,
    STORED_SUMMARY_BEFORE_CALLS,
    STORED_SUMMARY_BEFORE_TEXT,
    SUMMARY_BEFORE_CALLS,
    SUMMARY_BEFORE_TEXT,
    THINKING_BEFORE_CALLS,
    THINKING_BEFORE_TEXT,
    Assistant,
    Attachment,
    Call,
    Developer,
    FailedResult,
    Function,
    Json,
    Lane,
    Mark,
    Marks,
    Names,
    NotPlain,
    Result,
    System,
    Text,
    Texts,
    Turn,
    Turns,
    User,
    UserBesideResults,
    encode,
    loads,
)
from dragoman.wire.openai_chat.carried import FORMATS
from dragoman.wire.openai_chat.summary import summary

_decode = Decoder(list[System | Developer | User | Assistant | Result]).decode


# --- optional fields that many clients send


class _Ephemeral(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["ephemeral"]


class _Cached(_Ephemeral, gc=False):
    ttl: str | UnsetType = UNSET


class _Explicit(Struct, forbid_unknown_fields=True, gc=False):
    mode: Literal["explicit"]


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    cache_control: _Cached | UnsetType = UNSET
    prompt_cache_breakpoint: _Explicit | UnsetType = UNSET


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    id: str
    type: Literal["function"]
    function: Function
    index: int | UnsetType = UNSET
    cache_control: _Ephemeral | UnsetType = UNSET


class _Url(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    url: str
    detail: str | UnsetType = UNSET


class _Image(Struct, tag_field="type", tag="image_url", forbid_unknown_fields=True, gc=False):
    image_url: _Url | str
    """A string in Mistral's format."""


class _AudioData(Struct, forbid_unknown_fields=True, gc=False):
    data: str
    format: str


class _Audio(Struct, tag_field="type", tag="input_audio", forbid_unknown_fields=True, gc=False):
    input_audio: _AudioData | str
    """A string (data or URL) in Mistral's format."""


class _Video(Struct, tag_field="type", tag="video_url", forbid_unknown_fields=True, gc=False):
    video_url: _Url


class _FileData(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    file_data: str
    filename: str | UnsetType = UNSET


class _File(Struct, tag_field="type", tag="file", forbid_unknown_fields=True, gc=False):
    file: _FileData


class _Document(Struct, tag_field="type", tag="document_url", forbid_unknown_fields=True, gc=False):
    """Mistral's format."""

    document_url: str
    document_name: str | UnsetType = UNSET


class _UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str | list[_Text | _Image | _Audio | _Video | _File | _Document]
    name: str | UnsetType = UNSET


class _SystemMessage(System, tag="system", forbid_unknown_fields=True, gc=False):
    """System messages, with any optional fields."""

    content: Any
    name: Any = UNSET
    cache_control: Any = UNSET


class _DeveloperMessage(
    Developer, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False
):
    """As `_SystemMessage`."""

    content: Any
    name: Any = UNSET
    cache_control: Any = UNSET


class _Detail(Struct, forbid_unknown_fields=True, gc=False):
    """Common fields of OpenRouter's `reasoning_details`."""

    id: str | UnsetType | None = UNSET
    format: str | UnsetType | None = UNSET
    index: int | UnsetType = UNSET


class _TextDetail(_Detail, tag_field="type", tag="reasoning.text", kw_only=True, gc=False):
    text: str
    signature: str | UnsetType = UNSET


class _EncryptedDetail(
    _Detail, tag_field="type", tag="reasoning.encrypted", kw_only=True, gc=False
):
    data: str


class _AssistantMessage(
    Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False
):
    content: str | Texts | UnsetType | None = UNSET
    tool_calls: list[_Call] | UnsetType = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    reasoning: str | UnsetType = UNSET
    reasoning_details: list[_TextDetail | _EncryptedDetail] | UnsetType = UNSET
    refusal: UnsetType | None = UNSET
    annotations: list[None] | UnsetType = UNSET
    prefix: bool | UnsetType = UNSET


class _ToolMessage(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    tool_call_id: str
    content: str | Texts
    name: str | UnsetType = UNSET


_decode_marked = Decoder(
    list[_SystemMessage | _DeveloperMessage | _UserMessage | _AssistantMessage | _ToolMessage]
).decode


def _read(raw: Json) -> tuple[Turns, Marks]:
    try:
        return _decode(raw), ()
    except ValidationError:
        pass
    turns: Turns = []
    marks: list[Mark] = []
    names: Names = {}
    messages: list[Any] = _decode_marked(raw)
    for number, message in enumerate(messages):
        kind = type(message)
        if kind is _AssistantMessage:
            turns.append(_read_assistant(message, number, marks))
            names |= {call.id: call.function.name for call in message.tool_calls or ()}
        elif kind is _ToolMessage:
            if message.name is not UNSET:
                if names.get(message.tool_call_id) != message.name:
                    raise NotPlain
                marks.append((NAMED_RESULT, number, 0))
            turns.append(Result(message.tool_call_id, message.content))
        elif kind is _UserMessage:
            turns.append(_read_user(message, number, marks))
        else:
            turns.append(message)
    return turns, marks


def _read_user(message: _UserMessage, number: int, marks: list[Mark]) -> Turn:
    content: Any = message.content
    if message.name is not UNSET:
        marks.append((NAMED_USER, number, 0))
    if type(content) is str:
        return User(content)
    parts: list[Text | Attachment] = []
    for place, part in enumerate(content):
        if isinstance(part, _Text) and not _has_cache_options(part):
            parts.append(Text(part.text))
            if part.cache_control is not UNSET:
                marks.append((CACHED_USER, number, place))
            continue
        parts.append(worded(part) if isinstance(part, _Text) else _read_attachment(part))
        marks.append((ATTACHED, number, place))
    return User(parts)


def _has_cache_options(part: _Text) -> bool:
    """Whether the cache hint of a text has more than the default options."""
    hint = part.cache_control
    is_timed = type(hint) is _Cached and hint.ttl is not UNSET
    return is_timed or part.prompt_cache_breakpoint is not UNSET


def _read_attachment(part: _Image | _Audio | _Video | _File | _Document) -> Attachment:
    if isinstance(part, _Audio):
        data, sample = _read_audio(part)
    elif isinstance(part, _File):
        before, sample, data = addressed(part.file.file_data)
        part.file.file_data = before + sample
    elif isinstance(part, _Document):
        before, sample, data = addressed(part.document_url)
        part.document_url = before + sample
    else:
        at = part.image_url if isinstance(part, _Image) else part.video_url
        before, sample, data = addressed(at if isinstance(at, str) else at.url)
        if isinstance(at, _Url):
            at.url = before + sample
        elif isinstance(part, _Image):
            part.image_url = before + sample
    return attachment(part, sample, data)


def _read_audio(part: _Audio) -> tuple[str, str]:
    """The data, and the sample that replaces it."""
    given = part.input_audio
    if isinstance(given, _AudioData):
        data, given.data = given.data, inlined(given.data)
        return data, given.data
    part.input_audio = linked(given) if given.startswith("http") else inlined(given)
    return given, part.input_audio


def _read_assistant(message: _AssistantMessage, number: int, marks: list[Mark]) -> Turn:
    calls, content = message.tool_calls, message.content
    if message.annotations or (calls is not UNSET and not calls):
        raise NotPlain
    thoughts = [_BEFORE[each][calls is not UNSET] for each in _thinking_kinds(message)]
    marks += [(kind, number, place) for place, kind in enumerate(thoughts)]
    if content == "":
        content = UNSET
        marks.append((EMPTY_BEFORE_CALLS, number, len(thoughts)))
    if message.prefix is not UNSET:
        if message.prefix:
            raise NotPlain
        marks.append((PREFIX, number, 0))
    if message.refusal is None or message.annotations is not UNSET:
        marks.append((SPELLED_ANSWER, number, 0))
    if calls is UNSET:
        return Assistant(content)
    if any(call.index is not UNSET for call in calls):
        marks.append((SPELLED_CALL, number, 0))
    first = len(thoughts) + _part_count(message.content)
    marks += [(CACHED_CALL, number, first + place)
              for place, call in enumerate(calls) if call.cache_control is not UNSET]  # fmt: skip
    return Assistant(content, [Call(call.id, "function", call.function) for call in calls])


def _part_count(content: Any) -> int:
    """The number of content parts of a message; an empty text is one."""
    return len(content) if type(content) is list else int(type(content) is str)


_BEFORE = {
    "text": (THINKING_BEFORE_TEXT, THINKING_BEFORE_CALLS),
    "detail": (SUMMARY_BEFORE_TEXT, SUMMARY_BEFORE_CALLS),
    "sealed": (STORED_BEFORE_TEXT, STORED_BEFORE_CALLS),
    "signed": (STORED_SUMMARY_BEFORE_TEXT, STORED_SUMMARY_BEFORE_CALLS),
}
"""By kind of thinking: the marks before a text and before calls."""
_DETAILS: dict[str, dict[str, Any]] = {
    "detail": {"type": "reasoning.text", "text": "1", "format": "unknown", "index": 0},
    "sealed": {"type": "reasoning.encrypted", "data": "MQ==", "id": "1", "index": 0},
    "signed": {"type": "reasoning.text", "text": "1", "signature": "MQ==", "index": 0},
}
_SAMPLES = {kind: detail for name, detail in _DETAILS.items() for kind in _BEFORE[name]}


def _thinking_kinds(message: _AssistantMessage) -> list[str]:
    """The kind of each thinking part; raises `NotPlain` if it is ambiguous."""
    details = message.reasoning_details
    if not details:
        is_odd = details is not UNSET or message.reasoning is not UNSET
        if is_odd or message.reasoning_content in (None, ""):
            raise NotPlain
        return ["text"] if message.reasoning_content else []
    words = "".join(detail.text for detail in details if isinstance(detail, _TextDetail))
    if message.reasoning_content is not UNSET or message.reasoning not in (UNSET, words):
        raise NotPlain
    return [_detail_kind(detail) for detail in details]


def _detail_kind(detail: _TextDetail | _EncryptedDetail) -> str:
    if detail.format in FORMATS:
        raise NotPlain  # another dialect has it
    seal = detail.signature if isinstance(detail, _TextDetail) else detail.data
    if seal == "" or (isinstance(seal, str) and seal.startswith(ENVELOPE)):
        raise NotPlain
    if isinstance(detail, _EncryptedDetail):
        return "sealed"
    if not detail.text:
        raise NotPlain
    return "detail" if seal is UNSET else "signed"


def _write(turns: Turns, _names: Names) -> list[Any]:
    if _WITHOUT_EQUIVALENT.isdisjoint(map(type, turns)):
        return turns
    return [_write_turn(turn) if type(turn) in _WITHOUT_EQUIVALENT else turn for turn in turns]


_WITHOUT_EQUIVALENT = frozenset((UserBesideResults, FailedResult))
"""Turns that have no exact equivalent in this dialect."""


def _write_turn(turn: Any) -> Turn:
    if type(turn) is FailedResult:
        return Result(turn.tool_call_id, turn.content)
    return User(turn.content)


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, place = mark
    message = items[number]
    if kind == CACHED_USER:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][place]["cache_control"] = {"type": "ephemeral"}
    elif kind in _SAMPLES:
        message.setdefault("reasoning_details", []).insert(place, dict(_SAMPLES[kind]))
    elif kind == CACHED_CALL:
        message["tool_calls"][0]["cache_control"] = {"type": "ephemeral"}
    elif kind == SPELLED_CALL:
        message["tool_calls"][0]["index"] = 0
    elif kind in _FIELDS:
        message |= loads(encode(_FIELDS[kind]))
    else:
        raise NotPlain


_FIELDS: dict[int, dict[str, Any]] = {
    THINKING_BEFORE_TEXT: {"reasoning_content": "1"},
    THINKING_BEFORE_CALLS: {"reasoning_content": "1"},
    EMPTY_BEFORE_CALLS: {"content": ""},
    NAMED_RESULT: {"name": "f"},
    NAMED_USER: {"name": "f"},
    PREFIX: {"prefix": False},
    SPELLED_ANSWER: {"refusal": None, "annotations": []},
}
"""Message fields by mark."""


LANE = Lane(
    "messages",
    _read,
    _write,
    _mark,
    labels=frozenset(("user", "safety_identifier", "prompt_cache_key", "metadata")),
    summary=summary,
)
