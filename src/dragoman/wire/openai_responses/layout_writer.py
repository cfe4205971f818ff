"""Messages as items: which parts are one item, and what of them is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import AnyTool
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.openai_responses.content_types import PREFIXES
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.forms import formed
from dragoman.wire.openai_responses.layout import (
    ABSENT,
    LISTS,
    NO_SUMMARY,
    SPEAKERS,
    usual_message,
)
from dragoman.wire.openai_responses.tables import (
    CALL_SHAPES,
    INPUTS,
    NOT_SUPPORTED,
    OUTPUTS,
    RESULT_SHAPES,
    THOUGHTS,
    ItemWriting,
    continues_item,
    is_plain,
    is_unknown_part,
    item_form,
    payload_of,
    wire_id_of,
    write_part,
)
from dragoman.wire.openai_responses.tables_built_in import (
    IMAGE_CALL,
    MCP,
    SERVER_RESULT,
    belongs_to,
    encode_image_item,
    encode_server_call,
    is_inside_call,
)
from dragoman.wire.openai_responses.tools_client import (
    BY_NAME,
    CLIENT_TOOLS,
    ClientTool,
    as_function,
    client_tool_of,
    encode_client_call,
    encode_client_output,
    result_tool_of,
)
from dragoman.wire.overlay import spelled
from dragoman.wire.target import Target

_RESPONSE_TARGET = Target(dialect=NAME).relaxed
"""The target of responses: any client."""
_PART, _PART_OF_RESPONSE = "messages[{}].parts[{}]", "choices[0].message.parts[{1}]"
_FOREIGN_SIGNATURE = "another provider's signature is left out"
_FOREIGN = "only supported by the dialect it was received in"
_SEALED = "thinking can only be sent back as text"
_FOREIGN_THINKING = "another provider's thinking can't be replayed"
_PREFIXES = PREFIXES | {tool.call: tool.id_prefix for tool in CLIENT_TOOLS}
_OWN_ITEMS = (Thinking, ToolCall, ToolResult, ServerToolCall, ServerToolResult)


# --- messages and reasoning

_ASSISTANT = Role.ASSISTANT
_SPEAKER_NAMES = {role: name for name, role in SPEAKERS.items()}


def _encode_message(
    role: Role, content: str | list[Any], item_id: str | None, extras: Mapping[str, Any]
) -> dict[str, Any]:
    """Encode a message item. Parts of a tool message that are not results become the user's."""
    if isinstance(content, list) and len(content) == 1 and _is_plain(content[0], "input_text"):
        content = content[0]["text"]
    body: dict[str, Any] = {"role": _SPEAKER_NAMES.get(role, "user"), "content": content}
    if item_id is not None:
        body["id"] = item_id
    return spelled(formed(body, extras, usual_message(item_id)), extras, NAME)


def _encode_assistant_message(
    first: Part, content: list[Any], item_id: str | None
) -> dict[str, Any]:
    """Encode an assistant message item that begins with this part."""
    form = item_form(first)
    body: dict[str, Any] = {"role": "assistant", "content": content}
    if item_id is not None:
        body["id"] = item_id
    elif len(content) == 1 and _is_plain(content[0], "output_text"):
        body["content"] = content[0]["text"]
    body.update(usual_message(item_id) if form is None else form)
    body.pop(body.pop(ABSENT, ""), None)
    return body


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


def _encode_reasoning(parts: Sequence[Thinking], writing: ItemWriting) -> dict[str, Any]:
    """Encode a reasoning item."""
    first = parts[0]
    form = item_form(first)
    body: dict[str, Any] = {"type": "reasoning", **(NO_SUMMARY if form is None else form)}
    if writing.item_id is not None:
        body["id"] = writing.item_id
    for kind, key in LISTS.items():
        texts = [THOUGHTS[kind].write(p, writing) for p in parts if shown_form(p) == kind]
        if texts:
            body[key] = texts
    if first.data is not None:
        body["encrypted_content"] = first.data
    return body


def shown_form(part: Thinking) -> str:
    """The form of the text; text of redacted thinking (made by hand) counts as a summary."""
    return "summary" if part.form == "redacted" and part.text else part.form


def _begins_item(part: Thinking, previous: Thinking) -> bool:
    """Whether a part begins a new item; each item has one encrypted content."""
    is_other = part.item_id != previous.item_id or item_form(part) is not None
    return is_other or part.data is not None


# --- the list of items


class Place(NamedTuple):
    """The source of an item: its message, its first part, and the end (exclusive) of its parts."""

    message: int
    start: int
    end: int


class MessageWriter(ItemWriting):
    """Encodes messages as items for a target, or for a response if there is no target.

    Items made by other providers of the same dialect are also foreign to a target. In a response,
    missing item ids are generated.
    """

    __slots__ = ("_client_calls", "_client_tools", "_custom_calls", "_functions", "_source",
                 "items", "places")  # fmt: skip

    def __init__(self, target: Target | None = None, *, is_cut_off: bool = False) -> None:
        if target is None:
            super().__init__(
                _RESPONSE_TARGET, place=_PART_OF_RESPONSE, is_response=True, is_cut_off=is_cut_off
            )
        else:
            super().__init__(target, place=_PART)
        self.items: list[Any] = []
        self.places: list[Place] = []
        """The source of each item of a request."""
        self._custom_calls: set[str] = set()
        self._client_calls: dict[str, tuple[ClientTool, ToolCall]] = {}
        """Calls written as items of built-in tools, by id."""
        self._client_tools: frozenset[str] = frozenset()
        self._functions: set[str] = set()
        """The ids of all other calls."""
        self._source: Message

    def offer(self, tools: Sequence[AnyTool]) -> None:
        """Record the offered tools: a result without its call is recognised by its tool name."""
        declared = {tool.name for tool in tools if type(tool) is not ToolDefinition}
        if declared and not declared.isdisjoint(BY_NAME):
            found = {BY_NAME[name].name for name in declared if name in BY_NAME}
            functions = {tool.name for tool in tools if type(tool) is ToolDefinition}
            self._client_tools = frozenset(found - functions)

    def write(self, message: Message, index: int = 0) -> None:
        """Append the items of a message."""
        parts, role = message.parts, message.role
        if len(parts) == 1 and message.name is None and not self.is_response:
            item = self._plain_item(parts[0], message)
            if item is not None:
                self.items.append(item)
                self.places.append(Place(index, 0, 1))
                return
        self.begin(message, index)
        if message.name is not None:
            self.lose(self._message_path + ".name", NOT_SUPPORTED)
        if parts:
            self._write_groups(parts)
        elif role is not _ASSISTANT:
            self._put(_encode_message(role, [], None, message.extras), 0, 0)
        elif not self.is_response:
            self.lose(self._message_path + ".parts", "an empty assistant message is left out")

    def begin(self, message: Message, index: int = 0) -> None:
        """Set the message whose items are written next."""
        self._source, self.message, self.origin = message, index, message.origin

    @property
    def _message_path(self) -> str:
        return self.here.rpartition(".parts")[0]

    def _plain_item(  # noqa: PLR0911 - one for each kind, for speed
        self, part: Part, message: Message
    ) -> dict[str, Any] | None:
        """Encode the only part of a message, if it is a plain text, call or result.

        None if there may be more to it. `write_item` gives the same result; without this
        shortcut, encoding long conversations takes three times as long.
        """
        if part.signature is not None:
            return None
        if is_plain(part):
            if message.role is _ASSISTANT:
                return {"role": "assistant", "content": part.text}
            return _encode_message(message.role, part.text, None, message.extras)
        if part.extras is not EMPTY or part.cache is not None or part.item_id is not None:
            return None
        if type(part) is ToolCall:
            self._functions.add(part.id)
            return _plain_call(part)
        if type(part) is not ToolResult or part.call_id in self._custom_calls or self.wire_ids:
            return None
        if part.call_id in self._client_calls or part.tool_name in self._client_tools:
            return None
        content = part.content
        if type(content) is not str or not content or part.kind != "function" or part.is_error:
            return None
        return {"type": "function_call_output", "output": content, "call_id": part.call_id}

    def _write_groups(self, parts: Sequence[Part]) -> None:
        """Split the parts into items and write them."""
        start = 0
        for index in range(1, len(parts) + 1):
            if index == len(parts) or not self.continues(parts[index], parts[index - 1]):
                self.write_item(parts[start:index], start)
                start = index

    def continues(self, part: Part, previous: Part) -> bool:
        """Whether a part belongs to the same item as the previous one."""
        if isinstance(part, Thinking):
            return isinstance(previous, Thinking) and not _begins_item(part, previous)
        if belongs_to(part, previous):
            return True
        if self._source.role is not _ASSISTANT:
            return _is_input(part) and _is_input(previous)
        if not (is_content(part) and is_content(previous)) or part.item_id != previous.item_id:
            return False
        return continues_item(part) if part.item_id is None else item_form(part) is None

    def write_item(self, parts: Sequence[Part], start: int) -> None:
        """Write these parts as one item; `start` is the index of the first."""
        first = parts[0]
        self.part = start
        if isinstance(first, ToolCall):
            self._write_call(first)
        elif isinstance(first, ToolResult):
            self._write_result(first)
        elif isinstance(first, Thinking):
            self._write_reasoning(cast("Sequence[Thinking]", parts))
        elif isinstance(first, ServerToolCall):
            self._write_server_call(first, parts[1] if len(parts) > 1 else None)
        elif isinstance(first, ServerToolResult):
            self._write_server_result(first)
        elif self._is_foreign_image(first):
            self._write_image(cast("Image", first))
        elif not isinstance(first, Opaque) or is_content(first):
            self._write_message(parts)
        elif first.dialect == NAME:
            self._put(payload_of(first), start)
        else:
            self.lose_here(_FOREIGN)

    def _put(self, item: Any, start: int, size: int = 1) -> None:
        self.items.append(item)
        if not self.is_response:
            self.places.append(Place(self.message, start, start + size))

    # --- one method for each kind of item

    def _write_call(self, call: ToolCall) -> None:
        self._lose_cache(call)
        self.wire_id = wire_id_of(call, self.target) if self.is_ours(call) else call.id
        if self.wire_id != call.id:
            self.wire_ids[call.id] = self.wire_id
        self._lose_signature(call, _FOREIGN_SIGNATURE)
        if (tool := client_tool_of(call)) is not None and self._write_client_call(call, tool):
            return
        call = as_function(call)
        self._functions.add(call.id)
        if call.kind == "custom":
            self._custom_calls.add(call.id)
        shape = CALL_SHAPES[call.kind]
        self.item_id = self._item_id(call, shape.tag)
        self._put(shape.write(call, self), self.part)

    def _write_client_call(self, call: ToolCall, tool: ClientTool) -> bool:
        """Write a call of a client-run built-in tool as its own item type, if possible."""
        if not (self.is_response or self.target.has_made(self.origin_of(call))):
            return False
        item_id = self._item_id(call, tool.call)
        wire_id = self.wire_ids.get(call.id, call.id)
        is_foreign = self.is_foreign(call)
        item = encode_client_call(call, tool, item_id, wire_id, is_foreign=is_foreign)
        if item is not None:
            self._client_calls[call.id] = tool, call
            self._put(item, self.part)
        return item is not None

    def _client_tool(self, result: ToolResult, *, keeps_type: bool) -> ClientTool | None:
        """The built-in tool whose item type a result is written as, if any."""
        own = result_tool_of(result)
        if not self.target.has_made(self.origin_of(result)):
            own = None
        if keeps_type:
            return own
        if result.call_id in self._client_calls:
            return self._client_calls[result.call_id][0]
        if own is not None or result.call_id in self._functions:
            return None if result.call_id in self._functions else own
        return BY_NAME[result.tool_name or ""] if result.tool_name in self._client_tools else None

    def _write_client_result(self, result: ToolResult, tool: ClientTool) -> None:
        item_id = result.item_id if self.target.has_made(self.origin_of(result)) else None
        wire_id = self.wire_ids.get(result.call_id, result.call_id)
        _, call = self._client_calls.get(result.call_id, (None, None))
        made = encode_client_output(result, tool, item_id, wire_id, call)
        self._put(made.item, self.part)
        self._lose_cache(result)
        if made.is_lost:
            self.lose_here(NOT_SUPPORTED, ".content")
        if made.is_filled:
            self.repair_here("shape", "added", "an empty screenshot is added")

    def _write_result(self, result: ToolResult) -> None:
        # Outputs are matched by `call_id`, whatever their type: a received type is kept.
        keeps_type = not self.is_response and self.target.owns(self._source)
        tool = self._client_tool(result, keeps_type=keeps_type)
        if tool is not None:
            self._write_client_result(result, tool)
            return
        result = as_function(result)
        self.item_id = result.item_id if self.target.has_made(self.origin_of(result)) else None
        is_custom = result.call_id in self._custom_calls and not keeps_type
        kind = "custom" if is_custom else result.kind
        item = RESULT_SHAPES[kind].write(result, self)
        self._put(item, self.part)
        self._lose_cache(result)
        if result.is_error and kind == "custom" and "status" not in item:
            self.lose_here(NOT_SUPPORTED, ".is_error")

    def _is_foreign_image(self, part: Part) -> bool:
        """Whether a part is an image in a response that was generated without a tool."""
        is_image = isinstance(part, Image) and part.data is not None
        return is_image and self.is_response and not self.is_own(part)

    def _write_image(self, image: Image) -> None:
        """Write an image of a response as an image generation call."""
        item = encode_image_item(image, self._item_id(image, IMAGE_CALL))
        self._lose_signature(image, _FOREIGN_SIGNATURE)
        self._lose_cache(image)
        self._put(item, self.part)

    def _write_message(self, parts: Sequence[Part]) -> None:
        """Write a message item."""
        start, role = self.part, self._source.role
        is_assistant = role is _ASSISTANT
        self.item_id = item_id = self._item_id(parts[0], "message")
        content: list[Any] = []
        for self.part, part in enumerate(parts, start):
            body = write_part(OUTPUTS if is_assistant else INPUTS, part, self)
            if body is not UNSET:
                content.append(body)
            self._lose_signature(part, _FOREIGN_SIGNATURE)
            if is_assistant:
                self._lose_cache(part)
        if not content:
            return
        if is_assistant:
            item = _encode_assistant_message(parts[0], content, item_id)
        else:
            # The overlay belongs to the message's first item.
            extras = self._source.extras if start == 0 else EMPTY
            item = _encode_message(role, content, item_id, extras)
        self._put(item, start, len(parts))

    def _write_reasoning(self, parts: Sequence[Thinking]) -> None:
        """Reasoning is only sent back to its provider (W21); a response may show any provider's."""
        start, sent = self.part, parts
        self.item_id, is_ours = self._item_id(parts[0], "reasoning"), self.is_ours(parts[0])
        if not is_ours:
            sent = [part.replace(data=None) for part in parts if part.text and self.is_response]
        elif self.target.thinking.is_plain_text:
            sent = self._readable(parts)
        if sent:
            self._put(_encode_reasoning(sent, self), start, len(parts))
        for index, part in enumerate(parts, start):
            self.part = index
            if is_ours:
                self._lose_signature(part, NOT_SUPPORTED)
            elif not self.is_response or (part.data, part.signature) != (None, None):
                self.lose_here(_FOREIGN_THINKING)

    def _readable(self, parts: Sequence[Thinking]) -> Sequence[Thinking]:
        """Merge the readable texts of these parts into one; empty if there are none."""
        start = self.part
        for index, part in enumerate(parts, start):
            self.part = index
            if part.data is not None or not part.text:
                self.lose_here(_SEALED)
        self.part = start
        text = "\n\n".join(part.text for part in parts if part.text)
        if text and (len(parts) > 1 or parts[0].form != "full"):
            self.repair_here("shape", "retyped", "a summary is sent as readable text")
        return [parts[0].replace(text=text, form="full", data=None)] if text else []

    def _write_server_call(self, call: ServerToolCall, result: Part | None) -> None:
        """Write a call of a server tool, with the result if it is in the same item."""
        start, size = self.part, 1 if result is None else 2
        if not self.is_ours(call):
            for self.part in range(start, start + size):
                self.lose_here(_FOREIGN)
            return
        self.part = start
        self._put(encode_server_call(call, result, self), start, size)
        if isinstance(result, ServerToolResult) and result.is_error and call.name != MCP:
            self.part += 1
            self.lose_here(NOT_SUPPORTED, ".is_error")

    def _write_server_result(self, result: ServerToolResult) -> None:
        if not self.is_ours(result):
            self.lose_here(_FOREIGN)
        elif is_inside_call(result):
            self.lose_here("the result belongs in the item of its call, which is missing")
        else:
            self._put(SERVER_RESULT.write(result, self), self.part)
            content = result.content
            if content is not None and not (isinstance(content, Mapping) and "type" not in content):
                self.lose_here("the content does not fit into an item", ".content")

    # --- ownership of parts, and unsupported fields

    def _item_id(self, part: Part, item_type: str | None) -> str | None:
        """The item's id. A foreign one is left out (W21), or replaced by a new one in responses."""
        if part.item_id is not None and self.target.has_made(self.origin_of(part)):
            return part.item_id
        if self.is_response and not self.is_own(part):
            return generated_id(item_type, self._source.id, self.part)
        return None

    def _lose_cache(self, part: Part) -> None:
        if part.cache is not None:
            self.lose_here(NOT_SUPPORTED, ".cache")

    def _lose_signature(self, part: Part, reason: str) -> None:
        """Report the signature of a part as lost: items don't have one."""
        if part.signature is not None:
            self.lose_here(reason, ".signature")


def _plain_call(call: ToolCall) -> dict[str, Any] | None:
    raw = call.raw
    if raw is None or is_blank(raw) or call.kind != "function" or call.wire_id is not UNSET:
        return None
    return {"type": "function_call", "name": call.name, "arguments": raw, "call_id": call.id}


def generated_id(item_type: Any, message_id: str, index: int) -> str:
    """A stable id for an item that has none, from its message and the index of its first part."""
    prefix = _PREFIXES.get(item_type, "item") if type(item_type) is str else "item"
    return f"{prefix}_{message_id.removeprefix('msg_')}_{index}"


def _is_input(part: Part) -> bool:
    """Whether a part belongs in the content of an input message item."""
    if isinstance(part, Opaque):
        return is_unknown_part(part.payload) and part.dialect == NAME
    return not isinstance(part, _OWN_ITEMS)
