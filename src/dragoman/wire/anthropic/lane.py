"""Plain conversations: messages of texts, `tool_use` and `tool_result` blocks."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct
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


class _ToolUse(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    id: str
    name: str
    input: dict[str, Any]


class _ToolResult(
    Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False
):
    tool_use_id: str
    content: str | list[Text]


class _FromUser(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str | list[Text | _ToolResult]


class _FromModel(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    content: str | list[Text | _ToolUse]


_decode = Decoder(list[_FromUser | _FromModel]).decode


def _read(raw: Raw) -> Turns:
    turns: Turns = []
    for message in _decode(raw):
        content = message.content
        if type(message) is _FromUser:
            if type(content) is str:
                turns.append(User(content))
            else:
                _read_user(content, turns)  # type: ignore[arg-type]  # a list of them
        elif type(content) is str:
            turns.append(Assistant(content))
        else:
            turns.append(_read_answer(content))  # type: ignore[arg-type]  # a list of them
    return turns


def _read_user(blocks: list[Text | _ToolResult], turns: Turns) -> None:
    """Results, which come first, and texts."""
    texts: list[Text] = []
    has_results = False
    for block in blocks:
        if type(block) is Text:
            texts.append(block)
        elif texts:
            raise NotPlain
        else:
            has_results = True
            turns.append(Result(block.tool_use_id, block.content))  # type: ignore[union-attr]  # a result
    if texts:
        turns.append(UserBesideResults(texts) if has_results else User(texts))
    elif not has_results:
        raise NotPlain


def _read_answer(blocks: list[Text | _ToolUse]) -> Assistant:
    """Texts, and calls after them."""
    texts: list[str] = []
    calls: list[Call] = []
    for block in blocks:
        if type(block) is _ToolUse:
            arguments = encode(block.input).decode()
            calls.append(Call(block.id, "function", Function(block.name, arguments)))
        elif calls:
            raise NotPlain
        else:
            texts.append(block.text)  # type: ignore[union-attr]  # a Text
    return Assistant(text_or_texts(texts) if texts else UNSET, calls or UNSET)


def _write(turns: Turns, _names: Names) -> list[Any]:
    items: list[Any] = []
    results: list[Any] = []
    """Those of the round that is being written, which are one message (W40)."""
    for turn in turns:
        kind = type(turn)
        if kind is Result:
            if not results:
                items.append(_FromUser(results))
            results.append(_ToolResult(turn.tool_call_id, turn.content))  # type: ignore[union-attr]  # a Result
            continue
        if kind is UserBesideResults:
            content = turn.content
            results += [Text(content)] if type(content) is str else content  # type: ignore[arg-type]  # a list
            results = []
            continue
        results = []
        if kind is Assistant and turn.tool_calls:  # type: ignore[union-attr]  # an Assistant
            items.append(_written_calls(turn))  # type: ignore[arg-type]  # an Assistant
        elif kind is User or kind is Assistant:
            items.append(turn)
        else:
            raise NotPlain
    return items


def _written_calls(turn: Assistant) -> _FromModel:
    content = turn.content
    blocks: list[Any] = []
    if type(content) is str:
        blocks.append(Text(content))
    elif type(content) is list:
        blocks += content
    for call in turn.tool_calls or ():
        blocks.append(_ToolUse(call.id, call.function.name, arguments_of(call)))
    return _FromModel(blocks)


LANE = Lane("messages", _read, _write)
