"""Fast path for plain conversations: text messages, calls, and results that name their call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.call_ids import CallIds
from dragoman.wire.lane.plain import (
    SPELLED_CALL,
    SPELLED_RESULT,
    THINKING_BEFORE_CALLS,
    THINKING_BEFORE_TEXT,
    Assistant,
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
    System,
    Text,
    Turn,
    Turns,
    User,
    arguments_of,
    encode,
)


class _Function(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: dict[str, Any]


class _Call(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    function: _Function
    id: str
    type: Literal["function"] | UnsetType = UNSET


class _ReceivedCall(Struct, forbid_unknown_fields=True, gc=False):
    """Like `_Call`, as received from clients: most have no ids (W103)."""

    function: _Function
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class _AssistantMessage(
    Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False
):
    content: str = ""
    tool_calls: list[_Call] | UnsetType = UNSET


class _ReceivedAssistantMessage(
    Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False
):
    """Like `_AssistantMessage`, as received from clients."""

    content: str = ""
    tool_calls: list[_ReceivedCall] | UnsetType = UNSET
    thinking: str | UnsetType = UNSET


class _UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str
    images: list[str] | UnsetType = UNSET


class _SystemMessage(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    content: str


class _ToolMessage(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    content: str
    tool_name: str
    tool_call_id: str | UnsetType = UNSET


_decode = Decoder(
    list[_UserMessage | _ReceivedAssistantMessage | _ToolMessage | _SystemMessage]
).decode


def _read(raw: Json) -> tuple[Turns, Marks]:
    turns: Turns = []
    calls, names = CallIds(), Names()
    marks: list[Mark] = []
    messages: list[Any] = _decode(raw)
    for number, message in enumerate(messages):
        kind = type(message)
        if kind is _UserMessage:
            if message.images is not UNSET:
                raise NotPlain  # their type is not stated
            turns.append(User(message.content))
        elif kind is _SystemMessage:
            turns.append(System(message.content))
        elif kind is _ToolMessage:
            given = message.tool_call_id or None
            called, known = calls.answer_named(message.tool_name, given)
            if names.get(called) != message.tool_name or known != given:
                raise NotPlain
            turns.append(Result(called, message.content))
            if message.tool_call_id is UNSET:
                marks.append((SPELLED_RESULT, number, 0))
        else:
            calls.begin_step()
            calls.at(number)
            turns.append(_read_assistant(message, calls, names, number, marks))
    if calls.has_clashed:
        raise NotPlain
    return turns, marks


def _read_assistant(
    message: _ReceivedAssistantMessage, ids: CallIds, names: Names, number: int, marks: list[Mark]
) -> Assistant:
    calls: list[Call] = []
    is_spelled = False
    if message.thinking is not UNSET:
        if not message.thinking:
            raise NotPlain
        is_call = bool(message.tool_calls)
        marks.append((THINKING_BEFORE_CALLS if is_call else THINKING_BEFORE_TEXT, number, 0))
    for call in message.tool_calls or ():
        function, given = call.function, call.id if type(call.id) is str else None
        is_spelled = is_spelled or call.type is not UNSET or given is None
        call_id, _ = ids.add_named_call(function.name, given, function.arguments)
        names[call_id] = function.name
        arguments = encode(function.arguments).decode()
        calls.append(Call(call_id, "function", Function(function.name, arguments)))
    if is_spelled:
        marks.append((SPELLED_CALL, number, 0))
    return Assistant(message.content or UNSET, calls or UNSET)


def _write(turns: list[Any], names: Names) -> list[Any]:
    items: list[Any] = []
    for turn in turns:
        kind = type(turn)
        if kind is Result or kind is FailedResult:
            called = turn.tool_call_id
            items.append(_ToolMessage(turn.content, names[called], called))
        elif kind is Assistant:
            calls = turn.tool_calls
            text = turn.content if type(turn.content) is str else _text(turn, "")
            items.append(_AssistantMessage(text, UNSET if calls is UNSET else _write_calls(calls)))
        elif kind is System:
            items.append(_SystemMessage(_text(turn, "\n")))
        else:
            content = turn.content
            items.append(
                _UserMessage(content) if type(content) is str else _write_user_list(content)
            )
    return items


def _write_calls(calls: list[Call]) -> list[_Call]:
    return [_Call(_Function(c.function.name, arguments_of(c)), c.id) for c in calls]


def _write_user_list(content: Any) -> _UserMessage:
    """Texts joined into one, images beside it."""
    texts = [each.text for each in content if type(each) is Text]
    images = [each for each in content if type(each) is not Text]
    if not texts:
        raise NotPlain
    return _UserMessage("\n".join(texts), images or UNSET)


def _text(turn: Turn, joint: str) -> str:
    content: Any = turn.content
    if type(content) is str:
        return content
    return joint.join([text.text for text in content]) if type(content) is list else ""


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, _ = mark
    if kind in (THINKING_BEFORE_TEXT, THINKING_BEFORE_CALLS):
        items[number]["thinking"] = "1"
    elif kind == SPELLED_CALL:
        items[number]["tool_calls"][0]["type"] = "function"
    elif kind == SPELLED_RESULT:
        called = items[number].pop("tool_call_id")
        for message in items[:number]:
            for call in message.get("tool_calls", ()):
                if call.get("id") == called:
                    del call["id"]
    else:
        raise NotPlain


LANE = Lane("messages", _read, _write, _mark, reads_arguments=True, has_places=True)
