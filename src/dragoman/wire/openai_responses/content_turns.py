"""Messages, written as the flat list of items; `content_items` reads it.

The parts of a message are gathered into items. A call is one. Parts of what somebody says to the
model are one. Texts of the assistant are one where they share an `item_id`; without an id each is
its own, for only items with an id may hold several. A part's overlay may say otherwise
(`content_forms`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.fitting.tools import NO_ARGUMENTS, is_blank
from dragoman.wire.foreign_extras import foreign_fields
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.openai_responses.content import (
    encode_answer_part,
    encode_citation,
    encode_input,
    encode_opaque_item,
    encode_unknown_part,
    has_breakpoint,
    is_plain,
    is_unknown_part,
    keeps_time,
)
from dragoman.wire.openai_responses.content_forms import (
    continues_item,
    is_foreign,
    is_ours,
    item_form,
)
from dragoman.wire.openai_responses.content_items import (
    begins_item,
    encode_answer,
    encode_message,
    encode_reasoning,
    is_content,
)
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.request_repairs import Place
from dragoman.wire.openai_responses.tools_calls import (
    MCP,
    WrittenCalls,
    belongs_to,
    encode_call,
    encode_output,
    encode_server_call,
    encode_server_result,
    has_long_names,
    has_server,
    is_custom_output,
    stands_in_its_call,
    wire_id_of,
    with_short_names,
)
from dragoman.wire.target import Target

_ASSISTANT = Role.ASSISTANT
_FOREIGN_SEAL = "another provider's seal has no place here"
_NO_PLACE = "this dialect has no place for it"
_FOREIGN = "only the dialect that it came from can carry it"
_SEALED = "thinking goes back here as a text only"
_THOUGHT = "another's thinking can't be replayed here"
_LONG = "a property's name was shortened (W39)"
_OWN_ITEMS = (Thinking, ToolCall, ToolResult, ServerToolCall, ServerToolResult)


class Writer:
    """Writes messages as items, and notes what they could not say.

    `is_answer`: the items are a response's, where each has an id; one is made where it is missing.
    `is_cut_off`: a call may still be without its arguments.
    `target`: where a request goes to; what others made in the same dialect is foreign there, too.
    """

    __slots__ = (
        "_calls", "_is_answer", "_is_cut_off", "_message", "_path", "_target", "items", "losses",
        "places", "repairs",
    )  # fmt: skip

    def __init__(
        self,
        target: Target | None = None,
        *,
        is_answer: bool = False,
        is_cut_off: bool = False,
    ) -> None:
        self.items: list[Any] = []
        self.places: list[Place] = []
        """Of each item that is made of parts: where those stand; of others, an empty place."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self._target = target
        self._calls = WrittenCalls()
        self._is_answer = is_answer
        self._is_cut_off = is_cut_off
        self._message = make_message(_ASSISTANT)
        self._path: int | str = 0

    def write(self, message: Message, path: int | str) -> None:
        """Append the items of a message; its path is its index or a text."""
        self.begin(message, path)
        parts, role = message.parts, message.role
        if message.name is not None:
            self._lose("name", _NO_PLACE)
        if len(parts) == 1 and not self._is_answer and is_plain(parts[0]):
            self._write_plain(cast("Text", parts[0]).text)  # measured: 5 % of a request's time
        elif parts:
            self._write_groups(parts)
        elif role is _ASSISTANT:
            if not self._is_answer:
                self._lose("parts", "an answer that says nothing has no item")
        else:
            self._put(encode_message(role, [], None, message.extras), 0, 0)

    def _write_plain(self, text: str) -> None:
        """Write the only text of a message, as `write_item` would."""
        role = self._message.role
        if role is not _ASSISTANT:
            self._put(encode_message(role, text, None, self._message.extras), 0)
        else:
            body = {"role": "assistant", "content": text}
            self._put(self._typed(body, 0) if self._is_typed else body, 0)

    @property
    def _limits_names(self) -> bool:
        return self._target is None or self._target.tools.limits_argument_names

    @property
    def _is_typed(self) -> bool:
        return self._target is not None and self._target.fields.needs_message_type

    def _typed(self, item: dict[str, Any], start: int) -> dict[str, Any]:
        """The item with its type, which some hosts insist on."""
        if item.get("type") == "message":
            return item
        if self._target is not None and self._target.owns(self._message):
            path = f"messages[{self._path}].parts[{start}]"
            self.repairs.append(Repair(path, "shape", "added", "the type of the item"))
        return {"type": "message", **item}

    def begin(self, message: Message, path: int | str) -> None:
        """Name the message whose items are written next, one by one."""
        self._message, self._path = message, path

    def _write_groups(self, parts: Sequence[Part]) -> None:
        """Cut the parts where an item begins."""
        start = 0
        for index in range(1, len(parts) + 1):
            if index == len(parts) or not self.continues(parts[index], parts[index - 1]):
                self.write_item(parts[start:index], start)
                start = index

    def continues(self, part: Part, previous: Part) -> bool:
        """Whether a part belongs to the same item as the one before it."""
        if isinstance(part, Thinking):
            return isinstance(previous, Thinking) and not begins_item(part, previous)
        if belongs_to(part, previous):
            return True
        if self._message.role is not _ASSISTANT:
            return _is_said(part) and _is_said(previous)
        if not (is_content(part) and is_content(previous)) or part.item_id != previous.item_id:
            return False
        return continues_item(part) if part.item_id is None else item_form(part) is None

    def write_item(self, parts: Sequence[Part], start: int) -> None:
        """Write the item that these parts make up."""
        first = parts[0]
        if isinstance(first, ToolCall):
            self._write_call(first, start)
        elif isinstance(first, ToolResult):
            self._write_result(first, start)
        elif isinstance(first, Thinking):
            self._write_reasoning(cast("Sequence[Thinking]", parts), start)
        elif isinstance(first, (ServerToolCall, ServerToolResult)):
            self._write_server_tool(parts, start)
        elif isinstance(first, Opaque) and not is_content(first):
            self._write_opaque(first, start)
        elif self._message.role is _ASSISTANT:
            self._write_answer(parts, start)
        else:
            self._write_said(parts, start)

    def _put(self, item: Any, start: int, size: int = 1) -> None:
        self.items.append(item)
        if isinstance(self._path, int):
            self.places.append(Place(self._path, start, start + size))

    def _write_call(self, call: ToolCall, index: int) -> None:
        self._note_cache(call, index)
        item_id = self._item_id(call, "fc_" if call.kind == "function" else "ctc_", index)
        wire_id = wire_id_of(call, self._target) if self._is_ours(call) else call.id
        item = encode_call(call, item_id, wire_id, self._calls)
        self._note_seal(call, index)
        if call.kind == "function":
            self._fit_arguments(item, call, index)
        self._put(item, index)

    def _fit_arguments(self, item: dict[str, Any], call: ToolCall, index: int) -> None:
        """Put right what would be refused, or could not be parsed.

        Others' calls without arguments have an empty object; one that was cut off has none (I7).
        """
        if is_blank(item["arguments"]):
            if not self._is_cut_off and not self._is_ours(call):
                item["arguments"] = NO_ARGUMENTS
        elif self._limits_names and has_long_names(item["arguments"]):
            item["arguments"] = with_short_names(item["arguments"])
            self._lose(f"parts[{index}].arguments", _LONG)

    def _write_said(self, parts: Sequence[Part], start: int) -> None:
        content: list[Any] = []
        for index, part in enumerate(parts, start):
            self._add(content, encode_input(part), part, index)
            self._note_seal(part, index)
        # The overlay is of the message's first item; one that was cut in two had none.
        extras = self._message.extras if start == 0 else EMPTY
        if content:
            item_id = self._item_id(parts[0], "msg_", start)
            item = encode_message(self._message.role, content, item_id, extras)
            self._put(item, start, len(parts))

    def _write_answer(self, parts: Sequence[Part], start: int) -> None:
        item_id = self._item_id(parts[0], "msg_", start)
        content: list[Any] = []
        for index, part in enumerate(parts, start):
            body = encode_answer_part(part, has_id=item_id is not None)
            self._add(content, body, part, index)
            self._note_seal(part, index)
            self._note_cache(part, index)
        if content:
            item = encode_answer(parts[0], content, item_id)
            is_typed = self._is_typed and isinstance(item, dict)
            self._put(self._typed(item, start) if is_typed else item, start, len(parts))

    def _note_seal(self, part: Part, index: int) -> None:
        """Note a signature: here only reasoning is sealed, and nothing has it beside."""
        if part.signature is not None:
            self._lose(f"parts[{index}].signature", _FOREIGN_SEAL)

    def _retype(self, body: dict[str, Any], index: int) -> None:
        kind = "output_text" if self._message.role is _ASSISTANT else "input_text"
        if body.get("type") not in (kind, None) and isinstance(self._path, int):
            path = f"messages[{self._path}].parts[{index}]"
            self.repairs.append(Repair(path, "W30", "retyped", "a text as its speaker has it"))
        body["type"] = kind

    def _add(self, content: list[Any], body: Any, part: Part, index: int) -> None:
        if isinstance(part, Opaque):
            content.append(encode_unknown_part(part))
        elif body is None:
            self._lose(f"parts[{index}]", _NO_PLACE)
        else:
            content.append(body)
            if isinstance(part, Text) and isinstance(body, dict):  # it may have come as a bare text
                self._check_text(body, part, index)
            if isinstance(part, Refusal) and self._message.role is not _ASSISTANT:
                self._lose(f"parts[{index}]", "a refusal is sent as text")
            if part.cache is not None and has_breakpoint(body) and not keeps_time(part.cache):
                self._lose(f"parts[{index}].cache.ttl", _NO_PLACE)

    def _check_text(self, body: dict[str, Any], part: Text, index: int) -> None:
        if self._target and self._target.state.verifies_items:
            # W30: hosts that mind less may have taken the other's type.
            self._retype(body, index)
        self._check_citations(part, f"parts[{index}]")

    def _check_citations(self, part: Text, where: str) -> None:
        """Note what the annotations of a text don't say."""
        for number, citation in enumerate(part.citations):
            if encode_citation(citation) is None:
                self._lose(f"{where}.citations", _NO_PLACE)
                continue
            if citation.quote is not None:
                self._lose(f"{where}.citations[{number}].quote", _NO_PLACE)
            for source, _ in foreign_fields(citation.extras, NAME):
                self._lose(f"{where}.citations[{number}].extras", f"only {source} knows it")

    def _write_reasoning(self, parts: Sequence[Thinking], start: int) -> None:
        """Reasoning goes back to where it came from (W21); a client may read anybody's."""
        first = parts[0]
        item_id = self._item_id(first, "rs_", start)
        if self._is_ours(first):
            sent = parts
            if self._target is not None and self._target.thinking.is_plain_text:
                sent = self._readable(parts, start)
            if sent:
                self._put(encode_reasoning(sent, item_id), start, len(parts))
            for index, part in enumerate(parts, start):
                if part.signature is not None:
                    self._lose(f"parts[{index}].signature", _NO_PLACE)
            return
        readable = [part.replace(data=None) for part in parts if part.text]
        if self._is_answer and readable:
            self._put(encode_reasoning(readable, item_id), start, len(parts))
        for index, part in enumerate(parts, start):
            if not self._is_answer or part.data is not None or part.signature is not None:
                self._lose(f"parts[{index}]", _THOUGHT)

    def _readable(self, parts: Sequence[Thinking], start: int) -> Sequence[Thinking]:
        """One part with all that can be read in these; none where nothing can be."""
        for index, part in enumerate(parts, start):
            if part.data is not None or not part.text:
                self._lose(f"parts[{index}]", _SEALED)
        text = "\n\n".join(part.text for part in parts if part.text)
        if text and (len(parts) > 1 or parts[0].form != "full"):
            path = f"messages[{self._path}].parts[{start}]"
            self.repairs.append(Repair(path, "shape", "retyped", "a summary as a readable text"))
        whole = parts[0].replace(text=text, form="full", data=None)
        return [whole] if text else []

    def _write_result(self, result: ToolResult, index: int) -> None:
        lost: list[int] = []
        item_id = None if self._is_foreign(result) else result.item_id
        # Any output may answer any call (paired by `call_id`): what came stays of its type.
        is_as_it_came = self._target is not None and self._target.owns(self._message)
        kind = result.kind if is_as_it_came else self._calls.kind(result)
        item = encode_output(result, item_id, kind, self._calls, lost)
        self._put(item, index)
        self._note_cache(result, index)
        if result.is_error and is_custom_output(item) and "status" not in item:
            self._lose(f"parts[{index}].is_error", _NO_PLACE)
        for position in lost:
            self._lose(f"parts[{index}].content[{position}]", _NO_PLACE)
        for position, part in enumerate(() if isinstance(result.content, str) else result.content):
            if type(part) is Text:
                self._check_citations(part, f"parts[{index}].content[{position}]")

    def _write_server_tool(self, parts: Sequence[Part], start: int) -> None:
        first = parts[0]
        if not self._is_ours(first):
            for index in range(start, start + len(parts)):
                self._lose(f"parts[{index}]", _FOREIGN)
        elif isinstance(first, ServerToolCall):
            result = parts[1] if len(parts) > 1 else None
            self._put(encode_server_call(first, result), start, len(parts))
            if first.server is not None and not has_server(first.name):
                self._lose(f"parts[{start}].server", _NO_PLACE)
            if isinstance(result, ServerToolResult) and result.is_error and first.name != MCP:
                self._lose(f"parts[{start + 1}].is_error", _NO_PLACE)
        elif stands_in_its_call(first):
            self._lose(f"parts[{start}]", "it stands in the item of its call, which is not here")
        else:
            result = cast("ServerToolResult", first)
            self._put(encode_server_result(result), start)
            content = result.content
            if content is not None and not (isinstance(content, Mapping) and "type" not in content):
                self._lose(f"parts[{start}].content", "the fields of an item can't hold it")

    def _write_opaque(self, part: Opaque, index: int) -> None:
        if part.dialect == NAME:
            self._put(encode_opaque_item(part.payload), index)
        else:
            self._lose(f"parts[{index}]", _FOREIGN)

    def _item_id(self, part: Part, prefix: str, index: int) -> str | None:
        """The item's id. A foreign one is left out (W21), and made anew for an answer."""
        if part.item_id is not None and not self._is_foreign(part):
            return part.item_id
        if self._is_answer and not is_ours(self._message, part):
            return f"{prefix}{self._message.id.removeprefix('msg_')}_{index}"
        return None

    def _is_foreign(self, part: Part) -> bool:
        """Whether a part's ids mean nothing to the target."""
        if self._target is None:
            return is_foreign(self._message, part)
        return not self._target.has_made(self._message.origin_of(part))

    def _is_ours(self, part: Part) -> bool:
        """Whether a part's opaque state may go back to the target."""
        return is_ours(self._message, part) and not self._is_foreign(part)

    def _note_cache(self, part: Part, index: int) -> None:
        if part.cache is not None:
            self._lose(f"parts[{index}].cache", _NO_PLACE)

    def _lose(self, where: str, reason: str) -> None:
        path = self._path if isinstance(self._path, str) else f"messages[{self._path}]"
        self.losses.append(Loss(f"{path}.{where}", reason))


def _is_said(part: Part) -> bool:
    """Whether a part belongs into the content of a message item that is not the assistant's."""
    if isinstance(part, Opaque):
        return is_unknown_part(part.payload) and part.dialect == NAME
    return not isinstance(part, _OWN_ITEMS)
