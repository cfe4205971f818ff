"""How parts make items: messages and reasoning hold parts, and runs of items are messages.

Consecutive items of the assistant are one message. Any other message is one item, and so is each
tool output. Texts of the assistant are one item if they share an `item_id`; without an id each is a
separate item, because only items with an id may hold several. A part is marked (`tables.ITEM`)
where the parts would otherwise be split into items differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Origin,
    Part,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.envelope import is_sealed
from dragoman.wire.openai_responses.content_types import CALLS, PREFIXES
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_responses.forms import extras_in, without
from dragoman.wire.openai_responses.tables import (
    CONTINUES,
    ITEMS,
    THOUGHTS,
    ItemForm,
    ItemReading,
    decode_input,
    decode_output,
    opaque_item,
    unknown_part,
    with_item,
)
from dragoman.wire.openai_responses.tables_built_in import (
    SERVER_RESULT,
    decode_server_call,
    is_call,
    is_client_result,
    is_result,
)
from dragoman.wire.openai_responses.tools_client import (
    BY_CALL,
    BY_OUTPUT,
    decode_client_call,
    decode_client_output,
)
from dragoman.wire.overlay import with_guesses
from dragoman.wire.shown_calls import is_counterpart
from dragoman.wire.tolerance import Form, bare_text, readable_message, with_original
from dragoman.wire.unsealing import unsealed_message

# --- message items

SPEAKERS = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.DEVELOPER}
_FORM = Form(NAME, {word: word for word in SPEAKERS})
ABSENT: Final = "$absent"
"""The overlay key, in the form of an item, for a field that it lacked and that we write."""
_BARE = 2
"""The number of fields of the plainest item."""
_WITH_ID: Mapping[str, Any] = {"type": "message", "status": "completed"}


def usual_message(item_id: str | None) -> Mapping[str, Any]:
    """The usual form of a message."""
    return EMPTY if item_id is None else _WITH_ID


def _taken_id(optional: dict[str, Any]) -> str | None:
    """Remove an item's id; if it is not a string, it stays in the optional fields."""
    return optional.pop("id") if type(optional.get("id")) is str else None


def _decode_message(item: dict[str, Any], speaker: Role) -> Message | None:
    """Decode a user, system or developer message; None if it is malformed."""
    content = item.get("content")
    if type(content) is str and len(item) == _BARE:
        return make_message(speaker, (Text(content),))  # the most common form
    if not isinstance(content, (str, list)):
        return None
    optional = without(item, "role", "content")
    # The first part has the item's id; without parts, it is in the message's overlay.
    reading = ItemReading(None, CallIds())
    reading.item_id = item_id = None if content == [] else _taken_id(optional)
    parts: tuple[AnyPart, ...]
    if isinstance(content, str):
        parts = (Text(content, item_id=item_id),)
    else:
        parts = tuple([_decode_input(wire, reading) for wire in content])
    extras = extras_in(optional, usual_message(item_id))
    # The origin shows that the message was received without parts, not emptied later.
    return make_message(speaker, parts, extras=extras, origin=None if parts else ORIGIN)


def _decode_input(wire: Any, reading: ItemReading) -> AnyPart:
    if type(wire) is str:
        text = bare_text(wire, {"type": "input_text", "text": wire}, NAME)
        part: AnyPart = text.replace(item_id=reading.item_id)
    else:
        part = decode_input(wire, reading) or unknown_part(wire, reading.item_id)
    reading.item_id = None  # the first has it
    return part


def _is_odd_message(item: Any) -> bool:
    """Whether an item is a message with an unknown role, or a bare string."""
    if not isinstance(item, dict):
        return type(item) is str
    is_message = item.get("type") in (None, "message") and "content" in item
    return is_message and item.get("role") != "assistant" and not _is_answer(item)


def _is_answer(item: dict[str, Any]) -> bool:
    """Whether a message without a role has content that only the assistant's has."""
    content = item.get("content")
    if item.get("role") is not None or not isinstance(content, list):
        return False
    kinds = [part.get("type") for part in content if isinstance(part, dict)]
    return "output_text" in kinds or "refusal" in kinds


def _decode_odd_message(item: Any) -> Message | None:
    """Decode an odd message, with the most likely role."""
    made, guesses = readable_message(item, _FORM)
    message = _decode_message(made, SPEAKERS[made["role"]])
    return None if message is None else with_original(message, NAME, guesses)


def _decode_assistant_message(
    item: dict[str, Any], previous: Part | None, reading: ItemReading
) -> list[AnyPart] | None:
    """Decode an assistant message; None if it is malformed or empty.

    A response has no other messages: one without a role is the assistant's.
    """
    if (item.get("role") or "assistant") != "assistant" or ABSENT in item:
        return None
    content = item.get("content")
    if type(content) is str and len(item) == _BARE:
        return [Text(content)]  # the most common form
    optional = without(item, "content")
    if optional.get("role") == "assistant":
        del optional["role"]
    elif "role" not in optional:
        optional[ABSENT] = "role"
    if type(content) is str:
        content = [{"type": "output_text", "text": content}]
    elif not isinstance(content, list):
        return None
    reading.item_id = item_id = _taken_id(optional)
    is_glued = item_id is not None and previous is not None and previous.item_id == item_id
    form: ItemForm = optional if is_glued or optional != usual_message(item_id) else None
    parts: list[AnyPart] = []
    for wire in content:
        part = decode_output(wire, reading) or unknown_part(wire, item_id)
        parts.append(with_item(part, form))
        form = CONTINUES if item_id is None else None
    return parts


# --- reasoning items: summaries, readable and encrypted reasoning in one item
#
# Each summary or reasoning text is a `Thinking` part. Parts of one item share its id, and the
# first has the encrypted content (`data`) and the item's form. An item without readable text
# is one part of the form `redacted`.

NO_SUMMARY: dict[str, Any] = {"summary": []}
LISTS = {"summary": "summary", "full": "content"}
"""The lists of an item by the form of their texts."""


def _decode_reasoning(
    wire: dict[str, Any], previous: Part | None, reading: ItemReading
) -> list[Thinking] | None:
    """Decode a reasoning item; None if it is malformed."""
    optional = without(wire, "type")
    reading.item_id = item_id = _taken_id(optional)
    entries = [*_entries(optional, "summary"), *_entries(optional, "full")]
    data = optional.pop("encrypted_content") if _has_text(optional, "encrypted_content") else None
    usual = EMPTY if "summary" in wire and "summary" not in optional else NO_SUMMARY
    follows = isinstance(previous, Thinking) and previous.item_id == item_id
    item: ItemForm = optional if follows or optional != usual else None
    parts: list[Thinking] = []
    for form, entry in entries or [("redacted", {})]:
        part: Any = Thinking("", None, "redacted", item_id=item_id, origin=reading.origin)
        if entries:
            part = THOUGHTS[form].read(entry, reading)
        if type(part) is Opaque:
            return None
        part = with_item(part, item)
        if entry and "type" not in entry:
            extras = with_guesses(part.extras, NAME, [[["type"], THOUGHTS[form].tag]])
            part = part.replace_unchecked(extras=extras)
        parts.append(part if data is None else part.replace_unchecked(data=data))
        item = data = None
    return parts


def _has_text(wire: Mapping[str, Any], key: str) -> bool:
    return type(wire.get(key)) is str


def _entries(optional: dict[str, Any], form: str) -> list[tuple[str, dict[str, Any]]]:
    """Remove the texts of a form from the item and return them; empty if any is unknown."""
    field = LISTS[form]
    wire = optional.get(field)
    if not isinstance(wire, list) or not all(is_reasoning_text(entry, field) for entry in wire):
        return []
    if wire:
        del optional[field]
    return [(form, entry) for entry in wire]


def is_reasoning_text(entry: Any, field: str) -> bool:
    """Whether an entry of that list is a reasoning text of the list's type, or of none."""
    tag = THOUGHTS[next(form for form, key in LISTS.items() if key == field)].tag
    is_kind = isinstance(entry, dict) and entry.get("type", tag) == tag
    return is_kind and type(entry.get("text")) is str


# --- the list of items

_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER
_OUTPUTS = frozenset(CALLS.values())
_ADDED_TOOLS = "additional_tools"
_USER_ITEMS = frozenset({"mcp_approval_response", "compaction_trigger"})


def decode_items(items: Iterable[Any]) -> list[Message]:
    """Decode the items of a request."""
    listed = list(items)
    return decode_calls(lambda calls: _decode_listed(listed, ItemReader(ORIGIN, calls)))


def _decode_listed(items: list[Any], reader: ItemReader) -> list[Message]:
    for index, item in enumerate(items):
        reader.read(item, index)
    reader.close_run()
    return reader.messages


def decode_output_items(items: Iterable[Any], identity: Identity) -> tuple[AnyPart, ...]:
    """Decode the items of a response, which are one message; parts inherit its origin."""
    reader = ItemReader(None, CallIds(identity))
    for index, item in enumerate(items):
        reader.read_into_run(item, index)
    return tuple(reader.run)


def decode_output_item(
    item: Any, index: int, previous: AnyPart | None, identity: Identity
) -> list[AnyPart]:
    """Decode one item of a response, given the part before it."""
    reader = ItemReader(None, CallIds(identity))
    if previous is not None:
        reader.run.append(previous)
    reader.read_into_run(item, index)
    return reader.run[previous is not None :]


def likely_call(item: dict[str, Any]) -> str | None:
    """The type of a call that says none."""
    if "type" in item or type(item.get("call_id")) is not str:
        return None
    if type(item.get("arguments")) is str:
        return "function_call"
    return "custom_tool_call" if type(item.get("input")) is str else None


def _id_of(item: Mapping[str, Any]) -> str | None:
    found = item.get("id")
    return found if type(found) is str else None


class ItemReader(ItemReading):
    """Groups items into messages."""

    __slots__ = ("_runners", "messages", "run")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        super().__init__(origin, calls)
        self._runners: dict[Any, bool] = {}
        """By call id of a built-in tool: whether the client runs it."""
        self.messages: list[Message] = []
        self.run: list[AnyPart] = []
        """The parts of the current assistant turn."""

    def read(self, item: Any, index: int) -> None:
        """Decode an item of a request."""
        kind, role = (
            (item.get("type"), item.get("role")) if isinstance(item, dict) else (None, None)
        )
        if type(role) is str and (speaker := SPEAKERS.get(role)) is not None:
            is_message = kind is None or kind == "message"
            message = _decode_message(item, speaker) if is_message else None
            if message is None and is_message:
                message = _decode_odd_message(item)
            self._append(message or make_message(speaker, (self._opaque(item),)))
        elif (
            (kind is None or kind == "message")
            and _is_odd_message(item)
            and (message := _decode_odd_message(item)) is not None
        ):
            self._append(message)
        elif type(kind) is not str or kind in PREFIXES:
            self.read_into_run(item, index)
        elif kind in _OUTPUTS:
            self._append(make_message(_TOOL, (self._read_part(item),)))
        elif is_result(kind) and (self._client_runs(item) or is_client_result(item)):
            self._append(make_message(_TOOL, (self._built_in_result(kind, item),)))
        elif kind in _USER_ITEMS:
            self._append(make_message(_USER, (self._opaque(item),)))
        elif kind == _ADDED_TOOLS and item.get("role") is None:
            self._append(make_message(SPEAKERS["developer"], (self._opaque(item),)))
        else:
            self.read_into_run(item, index)

    def _client_runs(self, item: dict[str, Any]) -> bool | None:
        """Whether an output is the client's, judged by its call; None if that is missing."""
        call_id = item.get("call_id") if self._runners else None
        return self._runners.get(call_id) if type(call_id) is str else None

    def _built_in_call(self, kind: str, item: dict[str, Any]) -> Iterable[AnyPart]:
        self.item_id = _id_of(item)
        call = decode_client_call(item, self) if kind in BY_CALL else None
        if kind in BY_CALL and type(call_id := item.get("call_id")) is str:
            self._runners[call_id] = call is not None
        return decode_server_call(item, self) if call is None else (call,)

    def _built_in_result(self, kind: str, item: dict[str, Any]) -> ToolResult | ServerToolResult:
        is_clients = kind in BY_OUTPUT and self._client_runs(item) is not False
        result = decode_client_output(item, self) if is_clients else None
        return self._server_result(item) if result is None else result

    def _server_result(self, item: dict[str, Any]) -> Any:
        self.item_id = _id_of(item)
        return SERVER_RESULT.read(item, self)

    def _append(self, message: Message) -> None:
        if self.run:
            self.close_run()
        self.messages.append(message)

    def close_run(self) -> None:
        """End the assistant's turn."""
        if self.run:
            message = make_message(_ASSISTANT, tuple(self.run))
            self.run = []
            if self.has_envelopes:
                self.has_envelopes, message = False, unsealed_message(message, NAME)
            if message.parts or message.extras:  # else it was only a carrier of sealed state
                self.messages.append(message)

    def read_into_run(self, item: Any, index: int) -> None:
        """Decode an item of the assistant's turn."""
        self.calls.at(index)
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "message" and (made := likely_call(item)) is not None:
            call = self._read_part({**item, "type": made})
            is_call = type(call) is not Opaque
            parts: Any = is_call and [with_original(call, NAME, [[["type"], made]])]
        else:
            parts = self._decode(kind, item) if type(kind) is str else None
        if parts:
            self.run.extend(parts)
        else:
            self.run.append(self._opaque(item))

    def _decode(self, kind: str, item: dict[str, Any]) -> Iterable[AnyPart] | None:
        previous = self.run[-1] if self.run else None
        if kind == "message":
            return _decode_assistant_message(item, previous, self)
        if kind == "reasoning":
            thoughts = _decode_reasoning(item, previous, self)
            if thoughts and is_sealed(thoughts[0]):
                self.has_envelopes = True
            return thoughts
        if kind in ITEMS.by_tag:
            part = self._read_part(item)
            return None if type(part) is Opaque else (part,)
        return self._decode_built_in(kind, item) if is_call(kind) or is_result(kind) else None

    def _decode_built_in(self, kind: str, item: dict[str, Any]) -> list[AnyPart]:
        """Decode a built-in tool's call or result; a front's own is restored from its envelope."""
        made: list[AnyPart] = (
            [self._server_result(item)]
            if is_result(kind)
            else list(self._built_in_call(kind, item))
        )
        self.has_envelopes = self.has_envelopes or is_counterpart(made[0])
        return made

    def _read_part(self, item: dict[str, Any]) -> Any:
        """Decode a call or a result; opaque if it is malformed."""
        self.item_id = _id_of(item)
        shape = ITEMS.by_tag[item["type"]]
        return (shape.reads or shape.read)(item, self)

    def _opaque(self, item: Any) -> Opaque:
        return Opaque(NAME, opaque_item(item), origin=self.origin)
