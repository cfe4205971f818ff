"""Encodes messages as a flat list of items; `content_items` decodes them.

The parts of a message are grouped into items. A call is one item, and so are all parts of a user,
system or developer message. Texts of the assistant are one item if they share an `item_id`; without
an id each is a separate item, because only items with an id may hold several. The overlay of a part
may override this (`content_forms`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

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
from dragoman.wire.fitting.tools import NO_ARGUMENTS, is_blank
from dragoman.wire.openai_responses.content import (
    NOT_SUPPORTED,
    encode_input,
    encode_opaque_item,
    encode_output_part,
    encode_unknown_part,
    is_plain,
    is_unknown_part,
    lose_citations,
    loses_ttl,
)
from dragoman.wire.openai_responses.content_forms import continues_item, item_form
from dragoman.wire.openai_responses.content_items import (
    begins_item,
    encode_assistant_message,
    encode_message,
    encode_reasoning,
    is_content,
)
from dragoman.wire.openai_responses.content_types import PREFIXES
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.tools_calls import (
    IMAGE_CALL,
    MCP,
    TYPES,
    belongs_to,
    encode_call,
    encode_image_item,
    encode_output,
    encode_server_call,
    encode_server_result,
    has_server,
    is_custom_output,
    is_inside_call,
    plain_call,
    plain_output,
    wire_id_of,
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
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

_ASSISTANT = Role.ASSISTANT
_RESPONSE_TARGET = Target(dialect=NAME).relaxed
"""The target of responses: any client."""
_PART, _PART_OF_RESPONSE = "messages[{}].parts[{}]", "choices[0].message.parts[{1}]"
_FOREIGN_SIGNATURE = "another provider's signature is left out"
_FOREIGN = "only supported by the dialect it was received in"
_SEALED = "thinking can only be sent back as text"
_FOREIGN_THINKING = "another provider's thinking can't be replayed"
_PREFIXES = PREFIXES | {tool.call: tool.id_prefix for tool in CLIENT_TOOLS}
_OWN_ITEMS = (Thinking, ToolCall, ToolResult, ServerToolCall, ServerToolResult)


class Place(NamedTuple):
    """The source of an item: its message, its first part, and the end (exclusive) of its parts."""

    message: int
    start: int
    end: int


class MessageWriter(Writing):
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
            self._put(encode_message(role, [], None, message.extras), 0, 0)
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
        shortcut, encoding long conversations takes 1.3 times as long.
        """
        if part.signature is not None:
            return None
        if is_plain(part):
            if message.role is _ASSISTANT:
                return {"role": "assistant", "content": part.text}
            return encode_message(message.role, part.text, None, message.extras)
        if part.extras is not EMPTY or part.cache is not None or part.item_id is not None:
            return None
        if type(part) is ToolCall:
            self._functions.add(part.id)
            return plain_call(part)
        if type(part) is not ToolResult or part.call_id in self._custom_calls or self.wire_ids:
            return None
        if part.call_id in self._client_calls or part.tool_name in self._client_tools:
            return None
        return plain_output(part)

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
            return isinstance(previous, Thinking) and not begins_item(part, previous)
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
            self._put(encode_opaque_item(first.payload), start)
        else:
            self.lose_here(_FOREIGN)

    def _put(self, item: Any, start: int, size: int = 1) -> None:
        self.items.append(item)
        if not self.is_response:
            self.places.append(Place(self.message, start, start + size))

    # --- one method for each kind of item

    def _write_call(self, call: ToolCall) -> None:
        self._lose_cache(call)
        is_ours = self._is_ours(call)
        wire_id = wire_id_of(call, self.target) if is_ours else call.id
        if wire_id != call.id:
            self.wire_ids[call.id] = wire_id
        self._lose_signature(call, _FOREIGN_SIGNATURE)
        if (tool := client_tool_of(call)) is not None and self._write_client_call(call, tool):
            return
        call = as_function(call)
        self._functions.add(call.id)
        if call.kind == "custom":
            self._custom_calls.add(call.id)
        item = encode_call(call, self._item_id(call, TYPES[call.kind].call), wire_id)
        # Other dialects' calls without arguments get an empty object, unless truncated (I7).
        may_fill = call.kind == "function" and not is_ours and not self.is_cut_off
        if may_fill and is_blank(item.get("arguments", "")):
            item["arguments"] = NO_ARGUMENTS
        self._put(item, self.part)

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
        item_id = result.item_id if self.target.has_made(self.origin_of(result)) else None
        is_custom = result.call_id in self._custom_calls and not keeps_type
        item = encode_output(result, item_id, "custom" if is_custom else result.kind, self)
        self._put(item, self.part)
        self._lose_cache(result)
        if result.is_error and is_custom_output(item) and "status" not in item:
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
        item_id = self._item_id(parts[0], "message")
        content: list[Any] = []
        for index, part in enumerate(parts, start):
            self.part = index
            if isinstance(part, Opaque):
                content.append(encode_unknown_part(part))
            elif is_assistant:
                self._add(content, part, encode_output_part(part, has_id=item_id is not None))
            else:
                self._add(content, part, encode_input(part))
            self._lose_signature(part, _FOREIGN_SIGNATURE)
            if is_assistant:
                self._lose_cache(part)
        if not content:
            return
        if is_assistant:
            item = encode_assistant_message(parts[0], content, item_id)
        else:
            # The overlay belongs to the message's first item.
            extras = self._source.extras if start == 0 else EMPTY
            item = encode_message(role, content, item_id, extras)
        self._put(item, start, len(parts))

    def _add(self, content: list[Any], part: Part, body: Any) -> None:
        if body is None:
            self.lose_here(NOT_SUPPORTED)
            return
        content.append(body)
        if not isinstance(body, dict):  # the original was a bare string
            return
        if isinstance(part, Text):
            lose_citations(part, self)
        if isinstance(part, Refusal) and self._source.role is not _ASSISTANT:
            self.lose_here("a refusal is sent as text")
        if loses_ttl(part, body):
            self.lose_here(NOT_SUPPORTED, ".cache.ttl")

    def _write_reasoning(self, parts: Sequence[Thinking]) -> None:
        """Reasoning is only sent back to its provider (W21); a response may show any provider's."""
        start, sent = self.part, parts
        item_id, is_ours = self._item_id(parts[0], "reasoning"), self._is_ours(parts[0])
        if not is_ours:
            sent = [part.replace(data=None) for part in parts if part.text and self.is_response]
        elif self.target.thinking.is_plain_text:
            sent = self._readable(parts)
        if sent:
            self._put(encode_reasoning(sent, item_id), start, len(parts))
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
        if not self._is_ours(call):
            for self.part in range(start, start + size):
                self.lose_here(_FOREIGN)
            return
        self._put(encode_server_call(call, result), start, size)
        if call.server is not None and not has_server(call.name):
            self.lose_here(NOT_SUPPORTED, ".server")
        if isinstance(result, ServerToolResult) and result.is_error and call.name != MCP:
            self.part += 1
            self.lose_here(NOT_SUPPORTED, ".is_error")

    def _write_server_result(self, result: ServerToolResult) -> None:
        if not self._is_ours(result):
            self.lose_here(_FOREIGN)
        elif is_inside_call(result):
            self.lose_here("the result belongs in the item of its call, which is missing")
        else:
            self._put(encode_server_result(result), self.part)
            content = result.content
            if content is not None and not (isinstance(content, Mapping) and "type" not in content):
                self.lose_here("the content does not fit into an item", ".content")

    # --- ownership of parts, and unsupported fields

    def _item_id(self, part: Part, item_type: str) -> str | None:
        """The item's id. A foreign one is left out (W21), or replaced by a new one in responses."""
        if part.item_id is not None and self.target.has_made(self.origin_of(part)):
            return part.item_id
        if self.is_response and not self.is_own(part):
            return generated_id(item_type, self._source.id, self.part)
        return None

    def _is_ours(self, part: Part) -> bool:
        """Whether a part's opaque state may be sent back to the target."""
        origin = self.origin_of(part)
        return origin is not None and self.target.has_made(origin)

    def _lose_cache(self, part: Part) -> None:
        if part.cache is not None:
            self.lose_here(NOT_SUPPORTED, ".cache")

    def _lose_signature(self, part: Part, reason: str) -> None:
        """Report the signature of a part as lost: items don't have one."""
        if part.signature is not None:
            self.lose_here(reason, ".signature")


def generated_id(item_type: Any, message_id: str, index: int) -> str:
    """A stable id for an item that has none, from its message and the index of its first part."""
    prefix = _PREFIXES.get(item_type, "item") if type(item_type) is str else "item"
    return f"{prefix}_{message_id.removeprefix('msg_')}_{index}"


def _is_input(part: Part) -> bool:
    """Whether a part belongs in the content of an input message item."""
    if isinstance(part, Opaque):
        return is_unknown_part(part.payload) and part.dialect == NAME
    return not isinstance(part, _OWN_ITEMS)
