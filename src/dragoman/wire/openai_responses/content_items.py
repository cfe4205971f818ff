"""Decodes the items of a conversation to messages; `content_turns` encodes them.

Consecutive items of the assistant are one message. Any other message is one item, and so is each
tool output. A part is marked (`content_forms.ITEM`) where `content_turns` would otherwise split the
parts into items differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Origin,
    Part,
    Refusal,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.envelope import is_sealed
from dragoman.wire.openai_responses.content import (
    decode_inputs,
    decode_output_parts,
    is_unknown_part,
    opaque_item,
)
from dragoman.wire.openai_responses.content_forms import (
    ABSENT,
    ITEM,
    decode_form,
    decode_id,
    encode_form,
    formed,
    item_form,
    taken,
    with_form,
    without,
)
from dragoman.wire.openai_responses.content_types import CALLS, PREFIXES
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_responses.tools_calls import (
    decode_call,
    decode_output,
    decode_server_call,
    decode_server_result,
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
from dragoman.wire.overlay import spelled, with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.shown_calls import is_counterpart
from dragoman.wire.tolerance import Form, readable_message, with_original
from dragoman.wire.unsealing import unsealed_message

# --- message items

SPEAKERS = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.DEVELOPER}
_FORM = Form(NAME, {word: word for word in SPEAKERS})
_SPEAKER_NAMES = {role: name for name, role in SPEAKERS.items()}
_BARE = frozenset({"role", "content"})
"""The fields of the plainest item. The shortcut for such items, calls and outputs makes decoding a
conversation a third faster."""
_WITH_ID: Mapping[str, Any] = {"type": "message", "status": "completed"}


def _usual(item_id: str | None) -> Mapping[str, Any]:
    return EMPTY if item_id is None else _WITH_ID


def decode_message(item: dict[str, Any], speaker: Role) -> Message | None:
    """Decode a user, system or developer message; None if it is malformed."""
    content = item.get("content")
    if type(content) is str and len(item) == len(_BARE):
        return make_message(speaker, (Text(content),))  # shortcut: the most common form
    optional = without(item, "role", "content")
    # The first part has the item's id; without parts, it is in the message's overlay.
    item_id = None if content == [] else decode_id(item, optional)
    if type(content) is str:
        parts: tuple[AnyPart, ...] = (Text(content, item_id=item_id),)
    elif isinstance(content, list):
        parts = decode_inputs(content, item_id)
    else:
        return None
    extras = decode_form(optional, _usual(item_id))
    # The origin shows that the message was received without parts, not emptied later.
    return make_message(speaker, parts, extras=extras, origin=None if parts else ORIGIN)


def is_odd_message(item: Any) -> bool:
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


def decode_odd_message(item: Any) -> Message | None:
    """Decode an odd message, with the most likely role."""
    made, guesses = readable_message(item, _FORM)
    message = decode_message(made, SPEAKERS[made["role"]])
    return None if message is None else with_original(message, NAME, guesses)


def encode_message(
    role: Role, content: str | list[Any], item_id: str | None, extras: Mapping[str, Any]
) -> dict[str, Any]:
    """Encode a message item. Parts of a tool message that are not results become the user's."""
    if isinstance(content, list) and len(content) == 1 and _is_plain(content[0], "input_text"):
        content = content[0]["text"]
    body: dict[str, Any] = {"role": _SPEAKER_NAMES.get(role, "user"), "content": content}
    if item_id is not None:
        body["id"] = item_id
    elif extras is EMPTY:
        return body
    formed(body, extras, _usual(item_id))
    return spelled(body, extras, NAME)


def decode_assistant_message(item: dict[str, Any], previous: Part | None) -> list[AnyPart] | None:
    """Decode an assistant message; None if it is malformed or empty.

    A response has no other messages: one without a role is the assistant's.
    """
    if (item.get("role") or "assistant") != "assistant" or ABSENT in item:
        return None
    content = item.get("content")
    if type(content) is str and len(item) == len(_BARE):
        return [Text(content)]  # shortcut, as above
    optional = without(item, "content")
    if optional.get("role") == "assistant":
        del optional["role"]
    elif "role" not in optional:
        optional[ABSENT] = "role"
    if type(content) is str:
        content = [{"type": "output_text", "text": content}]
    elif not isinstance(content, list):
        return None
    item_id = decode_id(item, optional)
    is_glued = item_id is not None and previous is not None and previous.item_id == item_id
    form = optional if is_glued or optional != _usual(item_id) else None
    return decode_output_parts(content, item_id, form)


def encode_assistant_message(
    first: Part, content: list[Any], item_id: str | None
) -> dict[str, Any]:
    """Encode an assistant message item that begins with this part."""
    form = item_form(first)
    body: dict[str, Any] = {"role": "assistant", "content": content}
    if item_id is not None:
        body["id"] = item_id
    elif len(content) == 1 and _is_plain(content[0], "output_text"):
        body["content"] = content[0]["text"]
    return with_form(body, _usual(item_id) if form is None else form)


def _is_plain(wire: Any, own_type: str) -> bool:
    """Whether an encoded part may be sent as a string."""
    return (
        isinstance(wire, dict)
        and len(wire) == 2  # noqa: PLR2004 - type and text
        and wire.get("type") == own_type
        and type(wire.get("text")) is str
    )


def is_content(part: Part) -> bool:
    """Whether a part belongs in the content of an assistant message item."""
    if isinstance(part, Opaque):
        return part.dialect == NAME and is_unknown_part(part.payload)
    return isinstance(part, (Text, Refusal))


# --- reasoning items: summaries, readable and encrypted reasoning in one item
#
# Each summary or reasoning text is a `Thinking` part. Parts of one item share its id, and the
# first has the encrypted content (`data`) and the item's form. An item without readable text
# is one part of the form `redacted`.

ReasoningForm = Literal["summary", "full"]

_NO_SUMMARY: dict[str, Any] = {"summary": []}
_KEYS: dict[ReasoningForm, tuple[str, str]] = {
    "summary": ("summary", "summary_text"),
    "full": ("content", "reasoning_text"),
}


def decode_reasoning(
    wire: dict[str, Any], previous: Part | None, reading: Reading
) -> list[Thinking] | None:
    """Decode a reasoning item; None if it is malformed."""
    optional = dict(wire)
    del optional["type"]
    item_id = decode_id(wire, optional)
    entries = [*_entries(optional, "summary"), *_entries(optional, "full")]
    data = taken(optional, "encrypted_content", str)
    usual = EMPTY if "summary" in wire and "summary" not in optional else _NO_SUMMARY
    follows = isinstance(previous, Thinking) and previous.item_id == item_id
    item = optional if follows or optional != usual else None
    origin = reading.origin
    parts: list[Thinking] = []
    for form, entry in entries or [("redacted", {})]:
        kept = without(entry, "type", "text")
        if ITEM in kept:
            return None
        extras = decode_form(kept, EMPTY, item)
        if entry and "type" not in entry:
            made = "reasoning_text" if form == "full" else "summary_text"
            extras = with_guesses(extras, NAME, [[["type"], made]])
        text = entry.get("text", "")
        parts.append(
            Thinking(text, data, form, item_id=item_id, origin=origin, extras=extras)  # type: ignore[arg-type]  # one of three
        )
        item = data = None
    return parts


def _entries(optional: dict[str, Any], form: ReasoningForm) -> list[tuple[str, dict[str, Any]]]:
    """Remove the texts of a form from the item and return them; empty if any is unknown."""
    key, kind = _KEYS[form]
    wire = optional.get(key)
    if not isinstance(wire, list) or not wire or not all(is_reasoning_text(e, kind) for e in wire):
        return []
    del optional[key]
    return [(form, entry) for entry in wire]


def is_reasoning_text(entry: Any, kind: str) -> bool:
    """Whether an entry is a reasoning text of the given type, or of none."""
    is_kind = isinstance(entry, dict) and entry.get("type", kind) == kind
    return is_kind and type(entry.get("text")) is str


def encode_reasoning(parts: Sequence[Thinking], item_id: str | None) -> dict[str, Any]:
    """Encode a reasoning item."""
    first = parts[0]
    form = item_form(first)
    body: dict[str, Any] = {"type": "reasoning", **(_NO_SUMMARY if form is None else form)}
    if item_id is not None:
        body["id"] = item_id
    for kind in ("summary", "full"):
        key, entry_type = _KEYS[kind]
        texts = [_encode_entry(part, entry_type) for part in parts if shown_form(part) == kind]
        if texts:
            body[key] = texts
    if first.data is not None:
        body["encrypted_content"] = first.data
    return body


def shown_form(part: Thinking) -> str:
    """The form of the text; text of redacted thinking (made by hand) counts as a summary."""
    return "summary" if part.form == "redacted" and part.text else part.form


def _encode_entry(part: Thinking, kind: str) -> dict[str, Any]:
    entry = {"type": kind, "text": part.text, **encode_form(part.extras, EMPTY)}
    entry.pop(ITEM, None)
    return spelled(entry, part.extras, NAME)


def begins_item(part: Thinking, previous: Thinking) -> bool:
    """Whether a part begins a new item; each item has one encrypted content."""
    is_other = part.item_id != previous.item_id or item_form(part) is not None
    return is_other or part.data is not None


# --- the list of items

ASSISTANT, TOOL, USER = Role.ASSISTANT, Role.TOOL, Role.USER
_OUTPUTS = frozenset(CALLS.values())
_TOOLS = "additional_tools"
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
    if isinstance(item, dict) and item.get("type", "message") == "message":  # it has no calls
        parts = decode_assistant_message(item, previous)
        if parts:
            return list(parts)
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


class ItemReader(Reading):
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
            message = decode_message(item, speaker) if is_message else None
            if message is None and is_message:
                message = decode_odd_message(item)
            self._append(message or make_message(speaker, (self._opaque(item),)))
        elif is_odd_message(item) and (message := decode_odd_message(item)) is not None:
            self._append(message)
        elif type(kind) is not str or kind in PREFIXES:
            self.read_into_run(item, index)
        elif kind in _OUTPUTS:
            result = decode_output(item, self)
            self._append(make_message(TOOL, (result or self._opaque(item),)))
        elif is_result(kind) and (self._client_runs(item) or is_client_result(item)):
            self._append(make_message(TOOL, (self._built_in_result(kind, item),)))
        elif kind in _USER_ITEMS:
            self._append(make_message(USER, (self._opaque(item),)))
        elif kind == _TOOLS and item.get("role") is None:
            self._append(make_message(SPEAKERS["developer"], (self._opaque(item),)))
        else:
            self.read_into_run(item, index)

    def _client_runs(self, item: dict[str, Any]) -> bool | None:
        """Whether an output is the client's, judged by its call; None if that is missing."""
        call_id = item.get("call_id") if self._runners else None
        return self._runners.get(call_id) if type(call_id) is str else None

    def _built_in_call(self, kind: str, item: dict[str, Any]) -> Iterable[AnyPart]:
        call = decode_client_call(item, self) if kind in BY_CALL else None
        if kind in BY_CALL and type(call_id := item.get("call_id")) is str:
            self._runners[call_id] = call is not None
        return decode_server_call(item, self) if call is None else (call,)

    def _built_in_result(self, kind: str, item: dict[str, Any]) -> ToolResult | ServerToolResult:
        is_clients = kind in BY_OUTPUT and self._client_runs(item) is not False
        result = decode_client_output(item, self) if is_clients else None
        return decode_server_result(item, self) if result is None else result

    def _append(self, message: Message) -> None:
        if self.run:
            self.close_run()
        self.messages.append(message)

    def close_run(self) -> None:
        """End the assistant's turn."""
        if self.run:
            message = make_message(ASSISTANT, tuple(self.run))
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
            call = decode_call({**item, "type": made}, self)
            parts: Any = call and [with_original(call, NAME, [[["type"], made]])]
        else:
            parts = self._decode(kind, item) if type(kind) is str else None
        if parts:
            self.run.extend(parts)
        else:
            self.run.append(self._opaque(item))

    def _decode(self, kind: str, item: dict[str, Any]) -> Iterable[AnyPart] | None:
        previous = self.run[-1] if self.run else None
        if kind == "message":
            return decode_assistant_message(item, previous)
        if kind == "reasoning":
            thoughts = decode_reasoning(item, previous, self)
            if thoughts and is_sealed(thoughts[0]):
                self.has_envelopes = True
            return thoughts
        if kind in CALLS:
            call = decode_call(item, self)
            return None if call is None else (call,)
        if kind in _OUTPUTS:
            result = decode_output(item, self)
            return None if result is None else (result,)
        return self._decode_built_in(kind, item) if is_call(kind) or is_result(kind) else None

    def _decode_built_in(self, kind: str, item: dict[str, Any]) -> list[AnyPart]:
        """Decode a built-in tool's call or result; a front's own is restored from its envelope."""
        made: list[AnyPart] = (
            [decode_server_result(item, self)]
            if is_result(kind)
            else list(self._built_in_call(kind, item))
        )
        self.has_envelopes = self.has_envelopes or is_counterpart(made[0])
        return made

    def _opaque(self, item: Any) -> Opaque:
        return Opaque(NAME, opaque_item(item), origin=self.origin)
