"""Plain conversations: messages, `function_call` and `function_call_output` items."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.lane.plain import (
    Assistant,
    Call,
    Developer,
    Function,
    Lane,
    Names,
    NotPlain,
    Result,
    System,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
)
from dragoman.wire.openai_responses.tools_calls import has_long_names


class _Input(Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True, gc=False):
    text: str


class _Output(Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True, gc=False):
    text: str


class _Spoken(Struct, forbid_unknown_fields=True, gc=False):
    role: str
    content: str | list[_Input]


class _Called(Struct, tag_field="type", tag="function_call", gc=False):
    name: str
    arguments: str
    call_id: str


class _Answered(Struct, tag_field="type", tag="function_call_output", gc=False):
    output: str
    call_id: str


class _Item(Struct, forbid_unknown_fields=True, gc=False):
    """Any item: a message may have no type, so they can't be told apart by it."""

    type: Literal["message", "function_call", "function_call_output"] = "message"
    role: Literal["user", "assistant", "system", "developer"] | UnsetType = UNSET
    content: str | list[_Input | _Output] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    output: str | UnsetType = UNSET


_decode = Decoder(str | list[_Item]).decode
_SPEAKERS = {"user": User, "system": System, "developer": Developer}
_CALL = (False, True, False)
_RESULT = (False, False, True)
_MESSAGE = (True, False, False)


def _read(raw: Raw) -> Turns:
    items = _decode(raw)
    if type(items) is str:
        return [User(items)]
    turns: Turns = []
    for item in items:
        said = item.role is not UNSET and item.content is not UNSET
        called = item.name is not UNSET and item.arguments is not UNSET
        form = (said, called, item.output is not UNSET)
        if item.type == "message":
            if form != _MESSAGE or item.call_id is not UNSET:
                raise NotPlain
            turns.append(_read_message(item, turns))
        elif item.call_id is UNSET or item.role is not UNSET or item.content is not UNSET:
            raise NotPlain
        elif item.type == "function_call":
            if form != _CALL:
                raise NotPlain
            function = Function(item.name, item.arguments)  # type: ignore[arg-type]  # both are set
            _add_call(Call(item.call_id, "function", function), turns)  # type: ignore[arg-type]  # it is set
        elif form != _RESULT or item.name is not UNSET or item.arguments is not UNSET:
            raise NotPlain
        else:
            turns.append(Result(item.call_id, item.output))  # type: ignore[arg-type]  # both are set
    return turns


def _read_message(item: _Item, turns: Turns) -> Turn:
    content = item.content
    if item.role == "assistant":
        if turns and type(turns[-1]) is Assistant:
            raise NotPlain  # the items of one turn are one message: two texts, or one behind calls
        return Assistant(content if type(content) is str else _texts(content, _Output))
    speaker = _SPEAKERS[item.role]  # type: ignore[index]  # it is set
    return speaker(content if type(content) is str else _texts(content, _Input))


def _texts(content: Any, kind: type) -> list[Text]:
    texts: list[Text] = []
    for part in content:
        if type(part) is not kind:
            raise NotPlain
        texts.append(Text(part.text))
    return texts


def _add_call(call: Call, turns: Turns) -> None:
    """A call belongs to what the model said before it."""
    last = turns[-1] if turns else None
    if type(last) is not Assistant:
        turns.append(Assistant(UNSET, [call]))
    elif last.tool_calls is UNSET:
        last.tool_calls = [call]
    else:
        last.tool_calls.append(call)


def _write(turns: Turns, _names: Names) -> list[Any]:
    items: list[Any] = []
    for turn in turns:
        kind = type(turn)
        content = turn.content
        if kind is Result:
            items.append(_Answered(content, turn.tool_call_id))  # type: ignore[union-attr, arg-type]  # a Result
        elif kind is Assistant:
            if type(content) is str:
                items.append(_Spoken("assistant", content))
            elif type(content) is list:
                items += [_Spoken("assistant", text.text) for text in content]
            for call in turn.tool_calls or ():  # type: ignore[union-attr]  # an Assistant
                function = call.function
                if has_long_names(function.arguments):
                    raise NotPlain  # W39
                items.append(_Called(function.name, function.arguments, call.id))
        else:
            role = "user" if kind is User or kind is UserBesideResults else kind.__name__.lower()
            if type(content) is list:
                content = [_Input(text.text) for text in content]
            items.append(_Spoken(role, content))  # type: ignore[arg-type]  # a text, or inputs
    return items


LANE = Lane("input", _read, _write)
