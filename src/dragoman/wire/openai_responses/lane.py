"""Fast path for plain conversations: message, function call and reasoning items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.wire.envelope import PREFIX
from dragoman.wire.lane.attachments import addressed, attachment, worded
from dragoman.wire.lane.plain import (
    ATTACHED,
    SPELLED_ANSWER,
    SPELLED_CALL,
    SPELLED_RESULT,
    SPELLED_USER,
    STORED_BEFORE_CALLS,
    STORED_BEFORE_TEXT,
    STORED_SUMMARY_BEFORE_CALLS,
    STORED_SUMMARY_BEFORE_TEXT,
    SUMMARY_BEFORE_CALLS,
    SUMMARY_BEFORE_TEXT,
    THINKING,
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
    Turn,
    Turns,
    User,
    UserBesideResults,
)
from dragoman.wire.openai_responses.argument_names import has_long_names
from dragoman.wire.openai_responses.summary import summary


class _Explicit(Struct, forbid_unknown_fields=True, gc=False):
    mode: Literal["explicit"]


class _Input(Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True, gc=False):
    text: str
    prompt_cache_breakpoint: _Explicit | UnsetType = UNSET


class _Output(Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True, gc=False):
    text: str
    annotations: list[None] | UnsetType = UNSET
    logprobs: list[None] | UnsetType = UNSET


class _Image(Struct, tag_field="type", tag="input_image", forbid_unknown_fields=True, gc=False):
    image_url: str
    detail: str | UnsetType = UNSET


class _File(Struct, tag_field="type", tag="input_file", forbid_unknown_fields=True, gc=False):
    file_data: str | UnsetType = UNSET
    file_url: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET


class _MessageItem(Struct, gc=False):
    role: str
    content: str | list[Any]


class _CallItem(Struct, tag_field="type", tag="function_call", gc=False):
    name: str
    arguments: str
    call_id: str


class _OutputItem(Struct, tag_field="type", tag="function_call_output", gc=False):
    output: str | list[Any]
    call_id: str


class _FailedOutputItem(Struct, tag_field="type", tag="function_call_output", gc=False):
    output: str | list[Any]
    call_id: str
    status: str = "incomplete"


class _Summary(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["summary_text"]
    text: str


class _Item(Struct, forbid_unknown_fields=True, gc=False):
    """Any item. One class for all, because messages may have no type to distinguish them by."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["user", "assistant", "system", "developer"] | UnsetType = UNSET
    content: str | list[_Input | _Output | _Image | _File] | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    output: str | list[_Input | _Image | _File] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    status: Literal["completed"] | UnsetType = UNSET
    summary: list[_Summary] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


_decode = Decoder(str | list[_Item]).decode
_SPELLED = {
    "assistant": SPELLED_ANSWER,
    "message": SPELLED_USER,
    "function_call": SPELLED_CALL,
    "function_call_output": SPELLED_RESULT,
}
_SPEAKERS: dict[str, Callable[[Any], Turn]] = {
    "user": User,
    "system": System,
    "developer": Developer,
}


def _read(raw: Json) -> tuple[Turns, Marks]:
    items = _decode(raw)
    if type(items) is str:
        return [User(items)], ()
    turns: Turns = []
    marks: list[Mark] = []
    thoughts: list[_ReasoningKind] = []
    """Reasoning items whose following item has not been read yet."""
    for item in items:
        kind = item.type
        if kind == "reasoning":
            thoughts.append(_read_reasoning(item, turns))
            continue
        if item.summary is not UNSET or item.encrypted_content is not UNSET:
            raise NotPlain
        if thoughts:
            marks += _read_after_reasoning(item, thoughts, len(turns))
            thoughts = []
        if kind == "message":
            turns.append(_read_message(item, turns, marks))
        elif kind == "function_call":
            _add_call(_read_call(item), turns)
        else:
            turns.append(_read_result(item, len(turns), marks))
        if item.id is not UNSET or item.status is not UNSET:
            spelled = _SPELLED["assistant" if item.role == "assistant" else kind]
            marks.append((spelled, len(turns) - 1, 0))
    if thoughts:
        raise NotPlain
    return turns, marks


def _has_none(*fields: object) -> bool:
    """Whether an item has none of these fields."""
    return all(field is UNSET for field in fields)


class _ReasoningKind(NamedTuple):
    """The content of a reasoning item."""

    is_sealed: bool
    has_summary: bool


_BEFORE_TEXT = {
    _ReasoningKind(is_sealed=True, has_summary=False): THINKING_BEFORE_TEXT,
    _ReasoningKind(is_sealed=True, has_summary=True): SUMMARY_BEFORE_TEXT,
    _ReasoningKind(is_sealed=False, has_summary=False): STORED_BEFORE_TEXT,
    _ReasoningKind(is_sealed=False, has_summary=True): STORED_SUMMARY_BEFORE_TEXT,
}
_BEFORE_CALLS = {
    _ReasoningKind(is_sealed=True, has_summary=False): THINKING_BEFORE_CALLS,
    _ReasoningKind(is_sealed=True, has_summary=True): SUMMARY_BEFORE_CALLS,
    _ReasoningKind(is_sealed=False, has_summary=False): STORED_BEFORE_CALLS,
    _ReasoningKind(is_sealed=False, has_summary=True): STORED_SUMMARY_BEFORE_CALLS,
}
_KIND_OF_MARK = {
    kind: thought for kinds in (_BEFORE_TEXT, _BEFORE_CALLS) for thought, kind in kinds.items()
}


def _read_reasoning(item: _Item, turns: Turns) -> _ReasoningKind:
    """Read reasoning at the beginning of the model's turn."""
    fields = (item.role, item.name, item.arguments, item.call_id, item.output)
    is_plain = _has_none(*fields, item.status) and item.content in (UNSET, None)
    if not is_plain or (turns and type(turns[-1]) is Assistant) or type(item.summary) is not list:
        raise NotPlain
    seal = item.encrypted_content
    if seal is UNSET:
        if not item.id:
            raise NotPlain
    elif not seal or seal.startswith(PREFIX):
        raise NotPlain  # empty, or our own envelope
    if len(item.summary) > 1 or any(not entry.text for entry in item.summary):
        raise NotPlain  # several parts of one item
    return _ReasoningKind(seal is not UNSET, bool(item.summary))


def _read_after_reasoning(item: _Item, thoughts: list[_ReasoningKind], number: int) -> list[Mark]:
    if item.type == "message" and item.role == "assistant":
        kinds = _BEFORE_TEXT
    elif item.type == "function_call":
        kinds = _BEFORE_CALLS
    else:
        raise NotPlain
    return [(kinds[thought], number, part) for part, thought in enumerate(thoughts)]


def _read_call(item: _Item) -> Call:
    name, arguments, call_id = item.name, item.arguments, item.call_id
    if type(name) is not str or type(arguments) is not str or type(call_id) is not str:
        raise NotPlain
    if not _has_none(item.role, item.content, item.output):
        raise NotPlain
    return Call(call_id, "function", Function(name, arguments))


def _read_result(item: _Item, number: int, marks: list[Mark]) -> Result:
    output, call_id = item.output, item.call_id
    if not isinstance(output, (str, list)) or type(call_id) is not str:
        raise NotPlain
    if not _has_none(item.role, item.content, item.name, item.arguments):
        raise NotPlain
    if isinstance(output, str):
        return Result(call_id, output)
    read = _texts(output, _Input)
    marks += [(ATTACHED, number, 0) for part in read if type(part) is Attachment]
    return Result(call_id, read)


def _read_message(item: _Item, turns: Turns, marks: list[Mark]) -> Turn:
    content: Any = item.content
    if item.role is UNSET or not isinstance(content, (str, list)):
        raise NotPlain
    if not _has_none(item.name, item.arguments, item.call_id, item.output):
        raise NotPlain
    if item.role == "assistant":
        if turns and type(turns[-1]) is Assistant:
            raise NotPlain  # a second text of one turn, or a text after calls
        return Assistant(_texts(content, _Output) if isinstance(content, list) else content)
    parts = _texts(content, _Input) if isinstance(content, list) else content
    for place, part in enumerate(parts if isinstance(parts, list) else ()):
        if type(part) is Attachment:
            if item.role != "user":
                raise NotPlain
            marks.append((ATTACHED, len(turns), place))
    return _SPEAKERS[item.role](parts)


def _texts(content: list[Any], kind: type) -> list[Any]:
    """Read texts and, in input, attachments."""
    texts: list[Any] = []
    for part in content:
        if isinstance(part, kind) and isinstance(part, (_Input, _Output)):
            if isinstance(part, _Output) and (part.annotations or part.logprobs):
                raise NotPlain
            has_more = isinstance(part, _Input) and part.prompt_cache_breakpoint is not UNSET
            texts.append(worded(part) if has_more else Text(part.text))
        elif kind is _Input and isinstance(part, (_Image, _File)):
            texts.append(_read_attachment(part))
        else:
            raise NotPlain
    return texts


def _read_attachment(part: _Image | _File) -> Attachment:
    if isinstance(part, _Image):
        before, sample, data = addressed(part.image_url)
        part.image_url = before + sample
    elif type(part.file_data) is str and part.file_url is UNSET:
        before, sample, data = addressed(part.file_data)
        part.file_data = before + sample
    elif type(part.file_url) is str and part.file_data is UNSET:
        before, sample, data = addressed(part.file_url)
        part.file_url = before + sample
    else:
        raise NotPlain
    return attachment(part, sample, data)


def _add_call(call: Call, turns: Turns) -> None:
    """Add a call to the preceding assistant turn, or to a new one."""
    last = turns[-1] if turns else None
    if type(last) is not Assistant:
        turns.append(Assistant(UNSET, [call]))
    elif last.tool_calls is UNSET:
        last.tool_calls = [call]
    else:
        last.tool_calls.append(call)


def _write(turns: list[Any], _names: Names) -> list[Any]:
    items: list[Any] = []
    for turn in turns:
        kind = type(turn)
        content = turn.content
        if kind is Result or kind is FailedResult:
            made = _OutputItem if kind is Result else _FailedOutputItem
            items.append(made(_write_content(content), turn.tool_call_id))
        elif kind is Assistant:
            if type(content) is str:
                items.append(_MessageItem("assistant", content))
            elif type(content) is list:
                items += [_MessageItem("assistant", text.text) for text in content]
            for call in turn.tool_calls or ():
                function = call.function
                if has_long_names(function.arguments):
                    raise NotPlain  # W39
                items.append(_CallItem(function.name, function.arguments, call.id))
        else:
            role = "user" if kind is User or kind is UserBesideResults else kind.__name__.lower()
            items.append(_MessageItem(role, _write_content(content)))
    return items


def _write_content(content: Any) -> str | list[Any]:
    if type(content) is not list:
        return content  # type: ignore[no-any-return]  # a string
    return [_Input(part.text) if type(part) is Text else part for part in content]


def _mark(items: list[Any], mark: Mark) -> None:
    kind, number, part = mark
    place = _place(items, number)
    item = items[place]
    if kind & THINKING:
        items.insert(place + part, _reasoning(f"rs_{number}_{part}", _KIND_OF_MARK[kind]))
    elif kind == SPELLED_ANSWER:
        item = next(each for each in items[place:] if "content" in each)
        if isinstance(item["content"], str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
        item["content"][0] |= {"annotations": [], "logprobs": []}
        item |= {"type": "message", "id": f"msg_{number}", "status": "completed"}
    elif kind == SPELLED_CALL:
        item = next(each for each in items[place:] if each.get("type") == "function_call")
        item |= {"id": f"fc_{number}", "status": "completed"}
    elif kind == SPELLED_RESULT:
        item |= {"id": f"fco_{number}", "status": "completed"}
    elif kind == SPELLED_USER:
        item |= {"type": "message", "id": f"msg_{number}", "status": "completed"}
    else:
        raise NotPlain


def _reasoning(item_id: str, thought: _ReasoningKind) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "1"}] if thought.has_summary else []
    item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary}
    return {**item, "encrypted_content": "1"} if thought.is_sealed else item


def _place(items: list[Any], number: int) -> int:
    """The index of the first item of a message; items of one model turn are one message."""
    messages, was_model = -1, False
    for place, item in enumerate(items):
        is_model = item.get("role") == "assistant" or item.get("type") in _MODEL_ITEMS
        messages += not (is_model and was_model)
        was_model = is_model
        if messages == number:
            return place
    raise NotPlain


_MODEL_ITEMS = ("function_call", "reasoning")
LANE = Lane(
    "input",
    _read,
    _write,
    _mark,
    takes_text=True,
    shows_calls=True,
    labels=frozenset(("user", "safety_identifier", "prompt_cache_key", "metadata")),
    summary=summary,
)
