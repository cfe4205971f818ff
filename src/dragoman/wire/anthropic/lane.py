"""Fast path for plain conversations: text, media, thinking, `tool_use` and `tool_result` blocks."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.model.usage import Usage
from dragoman.wire.envelope import PREFIX
from dragoman.wire.lane.attachments import attachment, inlined, linked
from dragoman.wire.lane.plain import (
    ATTACHED,
    CACHED,
    CACHED_ANSWER,
    CACHED_CALL,
    CACHED_RESULT,
    CACHED_USER,
    FAILED_RESULT,
    SPELLED,
    SPELLED_ANSWER,
    SPELLED_CALL,
    SPELLED_RESULT,
    SPELLED_USER,
    THINKING_BEFORE_CALLS,
    THINKING_BEFORE_TEXT,
    Assistant,
    Attachment,
    Call,
    Contents,
    FailedResult,
    Function,
    Json,
    Lane,
    Mark,
    Marks,
    Names,
    NotPlain,
    Result,
    Summary,
    Text,
    Turns,
    User,
    UserBesideResults,
    arguments_of,
    encode,
    text_or_texts,
)


class _Ephemeral(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["ephemeral"]


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    cache_control: _Ephemeral | UnsetType | None = UNSET
    citations: UnsetType | None = UNSET


class _Base64(Struct, tag_field="type", tag="base64", forbid_unknown_fields=True, gc=False):
    media_type: str
    data: str


class _Url(Struct, tag_field="type", tag="url", forbid_unknown_fields=True, gc=False):
    url: str


class _Image(Struct, tag_field="type", tag="image", forbid_unknown_fields=True, gc=False):
    source: _Base64 | _Url


class _CitationsConfig(Struct, forbid_unknown_fields=True, gc=False):
    enabled: bool


class _Document(Struct, tag_field="type", tag="document", forbid_unknown_fields=True, gc=False):
    source: _Base64 | _Url
    title: str | UnsetType | None = UNSET
    context: str | UnsetType | None = UNSET
    citations: _CitationsConfig | UnsetType | None = UNSET


class _Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    thinking: str
    signature: str


class _ToolUse(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    id: str
    name: str
    input: dict[str, Any]
    cache_control: _Ephemeral | UnsetType | None = UNSET


class _ToolResult(
    Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False
):
    tool_use_id: str
    content: str | list[_Text | _Image | _Document]
    is_error: bool | UnsetType = UNSET
    cache_control: _Ephemeral | UnsetType | None = UNSET


class _UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str | list[_Text | _ToolResult | _Image | _Document]


class _AssistantMessage(
    Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False
):
    content: str | list[_Text | _ToolUse | _Thinking]


_decode = Decoder(list[_UserMessage | _AssistantMessage]).decode


def _read(raw: Json) -> tuple[Turns, Marks]:
    turns: Turns = []
    marks: list[Mark] = []
    for number, message in enumerate(_decode(raw)):
        content: Any = message.content
        if type(content) is str:
            turns.append(User(content) if type(message) is _UserMessage else Assistant(content))
        elif type(message) is _UserMessage:
            _read_user(content, turns, number, marks)
        else:
            turns.append(_read_assistant(content, number, marks))
    return turns, marks


def _read_user(blocks: list[Any], turns: Turns, number: int, marks: list[Mark]) -> None:
    """Read tool results, which come first, texts and attachments."""
    texts: list[Text | Attachment] = []
    for place, block in enumerate(blocks):
        if type(block) is _ToolResult:
            if texts or (not place and turns and type(turns[-1]) is not Assistant):
                raise NotPlain  # the latter: results of one round in two messages (W40)
            if block.is_error is block.cache_control is UNSET and type(block.content) is str:
                turns.append(Result(block.tool_use_id, block.content))
            else:
                turns.append(_read_result(block, number, place, marks))
        elif type(block) is _Text:
            texts.append(Text(block.text))
            if block.cache_control:
                marks.append((CACHED_USER, number, place))
            elif block.cache_control is None or block.citations is None:
                marks.append((SPELLED_USER, number, place))
        else:
            texts.append(_read_attachment(block))
            marks.append((ATTACHED, number, place))
    if texts:
        turns.append(UserBesideResults(texts) if len(texts) < len(blocks) else User(texts))
    elif not blocks:
        raise NotPlain


def _read_result(block: _ToolResult, number: int, place: int, marks: list[Mark]) -> Result:
    is_cached = bool(block.cache_control)
    content = _read_content(block.content, number, place, marks)
    if block.is_error is True:
        if block.cache_control is not UNSET:
            raise NotPlain
        marks.append((FAILED_RESULT, number, place))
        return FailedResult(block.tool_use_id, content)
    if is_cached:
        marks.append((CACHED_RESULT, number, place))
    elif block.is_error is False or block.cache_control is None:
        marks.append((SPELLED_RESULT, number, place))
    return Result(block.tool_use_id, content)


def _read_content(
    content: str | list[Any], number: int, place: int, marks: list[Mark]
) -> str | Contents:
    """Read the content of a result."""
    if isinstance(content, str):
        return content
    read: Contents = []
    for block in content:
        if type(block) is not _Text:
            read.append(_read_attachment(block))
            marks.append((ATTACHED, number, place))
        elif block.cache_control is block.citations is UNSET:
            read.append(Text(block.text))
        else:
            raise NotPlain
    return read


def _read_attachment(block: _Image | _Document) -> Attachment:
    source = block.source
    if isinstance(source, _Base64):
        data, source.data = source.data, inlined(source.data)
        return attachment(block, source.data, data)
    data, source.url = source.url, linked(source.url)
    return attachment(block, source.url, data)


def _read_assistant(blocks: list[Any], number: int, marks: list[Mark]) -> Assistant:
    """Read thinking, texts and calls, in this order."""
    texts: list[str] = []
    calls: list[Call] = []
    cached: list[Mark] = []
    thoughts = 0
    for place, block in enumerate(blocks):
        if type(block) is _ToolUse:
            arguments = encode(block.input).decode()
            calls.append(Call(block.id, "function", Function(block.name, arguments)))
            if block.cache_control is not UNSET:
                cached.append((CACHED_CALL if block.cache_control else SPELLED_CALL, number, place))
        elif calls:
            raise NotPlain
        elif type(block) is _Text:
            texts.append(block.text)
            if block.cache_control:
                cached.append((CACHED_ANSWER, number, place))
            elif block.cache_control is None or block.citations is None:
                cached.append((SPELLED_ANSWER, number, place))
        elif texts or not block.thinking or not _is_signed(block):
            raise NotPlain
        else:
            thoughts += 1
    if thoughts:
        thinking = THINKING_BEFORE_CALLS if calls else THINKING_BEFORE_TEXT
        marks += [(thinking, number, place) for place in range(thoughts)]
    marks += cached
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


def _is_signed(block: _Thinking) -> bool:
    """Whether the signature is a provider's, not our envelope."""
    return bool(block.signature) and not block.signature.startswith(PREFIX)


def _write(turns: list[Any], _names: Names) -> list[Any]:
    items: list[Any] = []
    results: list[Any] | None = None
    """Results of the current round, which form one message (W40)."""
    for turn in turns:
        kind = type(turn)
        if kind is Assistant:
            results = None
            items.append(_write_assistant(turn) if turn.tool_calls else turn)
        elif kind is User:
            results = None
            items.append(turn)
        elif kind is Result or kind is FailedResult:
            if results is None:
                results = []
                items.append(_UserMessage(results))
            failed = UNSET if kind is Result else True
            results.append(_ToolResult(turn.tool_call_id, turn.content, failed))
        elif kind is UserBesideResults and results is not None:
            content = turn.content
            results += [Text(content)] if type(content) is str else content
            results = None
        else:
            raise NotPlain
    return items


def _write_assistant(turn: Assistant) -> _AssistantMessage:
    content = turn.content
    blocks: list[Any] = []
    if type(content) is str:
        blocks.append(Text(content))
    elif type(content) is list:
        blocks += content
    for call in turn.tool_calls or ():
        blocks.append(_ToolUse(call.id, call.function.name, arguments_of(call)))
    return _AssistantMessage(blocks)


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, place = mark
    message = items[number]
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    if kind in (THINKING_BEFORE_TEXT, THINKING_BEFORE_CALLS):
        message["content"].insert(0, {"type": "thinking", "thinking": "1", "signature": "MQ=="})
    elif kind & CACHED:
        message["content"][place]["cache_control"] = {"type": "ephemeral"}
    elif kind == SPELLED_RESULT:
        message["content"][place] |= {"is_error": False, "cache_control": None}
    elif kind == SPELLED_CALL:
        message["content"][place]["cache_control"] = None
    elif kind & SPELLED:
        message["content"][place] |= {"cache_control": None, "citations": None}
    elif kind != FAILED_RESULT:  # `_write` already handles it
        raise NotPlain


# --- what a response that is passed through unchanged says of itself


class _Written(Struct, forbid_unknown_fields=True, gc=False):
    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: Literal[0] = 0


class _Counts(Struct, forbid_unknown_fields=True, gc=False):
    """Usage with known fields only: an unknown one might affect the price."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _Written | None = None
    server_tool_use: None = None
    service_tier: Literal["standard"] | None = None


class _ResponseHead(Struct, gc=False):
    content: Raw
    usage: _Counts
    model: str
    id: str | None = None
    type: Literal["message"] = "message"


_read_head = msgspec.json.Decoder(_ResponseHead).decode


def summary(body: bytes) -> Summary | None:
    """The summary of a response body; None if the body has to be decoded in full."""
    try:
        head = _read_head(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    counts = head.usage
    read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    if min(counts.input_tokens, counts.output_tokens, read, written) < 0:
        return None
    usage = Usage(counts.input_tokens, counts.output_tokens, read, written)
    return Summary(head.model, usage, head.id)


LANE = Lane(
    "messages",
    _read,
    _write,
    _mark,
    groups_results=True,
    shows_calls=True,
    reads_arguments=True,
    labels=frozenset(("metadata",)),
    summary=summary,
)
