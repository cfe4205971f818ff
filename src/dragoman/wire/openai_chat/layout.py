"""Messages: how the parts of a message are spread over its fields.

A field is a slot for some kinds of parts. They are read in the order of the slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result
from dragoman.wire.call_ids import decode_calls
from dragoman.wire.envelope import is_sealed
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, ChatWriting, absent, is_own
from dragoman.wire.openai_chat.settings import message_without_refused_fields
from dragoman.wire.openai_chat.tables import (
    NULL_CONTENT,
    SPEECH,
    SPEECH_ID,
    decode_annotations,
    decode_images,
    decode_parts,
    encode_annotation,
    encode_content,
    encode_part,
    is_fully_supported,
)
from dragoman.wire.openai_chat.thinking import (
    SEALED_THINKING,
    decode_reasoning,
    encode_reasoning,
    encode_thinking,
    is_lost_in_chunk,
)
from dragoman.wire.openai_chat.tools import (
    EXECUTED_TOOLS,
    decode_call,
    decode_function_call,
    decode_server_tools,
    encode_call,
    encode_function_call,
    encode_server_tool,
    is_legacy,
)
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, with_word, words_of
from dragoman.wire.overlay_edits import PARTS, Places, with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.tolerance import Form, readable_message, with_original
from dragoman.wire.unsealing import unsealed_message

_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL
_SPEAKERS = {
    "user": Role.USER, "system": Role.SYSTEM, "developer": Role.DEVELOPER, "assistant": _ASSISTANT
}  # fmt: skip
_WORDS = {role: word for word, role in _SPEAKERS.items()}
_KNOWN = frozenset({*_SPEAKERS, "tool", "function"})
_PLAIN = 2  # a role and a content
FORM = Form(NAME, {word: word for word in _KNOWN}, kinds=(str, list, type(None)))
"""The shape of messages in this dialect."""
CONTENT_FIELDS = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
"""Fields of which a message needs at least one (W2)."""
_NO_CONTENT = "-content"
"""The overlay word for a message that had none of them."""
_THINKING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
FIELD_PLACES: Places = {
    **dict.fromkeys(_THINKING, f"{PARTS}Thinking"),
    "refusal": f"{PARTS}Refusal",
    "audio": f"{PARTS}Audio",
    "images": f"{PARTS}Image",
    EXECUTED_TOOLS: f"{PARTS}ServerToolCall",
}
"""What the fields of an assistant message stand for, if they could not be read."""

# --- reading


def decode_messages(wire: list[Any]) -> tuple[Message, ...]:
    """Decode messages one to one."""
    return decode_calls(lambda calls: _decode_all(wire, Reading(ORIGIN, calls)))


def _decode_all(wire: list[Any], reading: Reading) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, item in enumerate(wire):
        # Shortcut for a role and a text, which is more than half of all messages: 3 times as fast.
        if type(item) is dict and len(item) == _PLAIN and type(item.get("content")) is str:
            word = item.get("role")
            role = _SPEAKERS.get(word) if type(word) is str else None
            if role is not None:
                messages.append(make_message(role, (Text(item["content"]),)))
                continue
        messages.append(decode_message(item, reading, index))
    return tuple(messages)


def decode_message(wire: Any, reading: Reading, index: int) -> Message:
    """Decode a message; one that is malformed is made readable."""
    word: Any = wire.get("role") if type(wire) is dict else None
    is_known = type(word) is str and word in _KNOWN
    if not is_known or type(wire.get("content")) not in FORM.kinds:
        made, guesses = readable_message(wire, FORM)
        return with_original(decode_message(made, reading, index), NAME, guesses)
    if word in ("tool", "function"):
        return _decode_result(wire, reading)
    if word == "assistant":
        reading.calls.begin_turn(index)
        return decode_assistant(wire, reading)
    content = wire.get("content")
    parts = () if content is None else tuple(_read_content(content, reading))
    words = () if "content" in wire else (_NO_CONTENT,)
    return _made(_SPEAKERS[word], parts, wire, {"role", "content"} if parts else {"role"}, words)


def _made(
    role: Role, parts: tuple[AnyPart, ...], wire: dict[str, Any], used: set[str], words: Any
) -> Message:
    """A message with its name, and what else is in it."""
    name = wire.get("name")
    if isinstance(name, str):
        used.add("name")
    else:
        name = None
    if not words and len(used) == len(wire):
        return make_message(role, parts, name)
    is_null = not words and len(wire) == len(used) + 1 and wire.get("content", "") is None
    extras = NULL_CONTENT if is_null else overlay_of(wire, used, NAME, words=words)
    return make_message(role, parts, name, extras=extras)


def _read_content(content: Any, reading: Reading) -> list[AnyPart]:
    return [Text(content)] if isinstance(content, str) else decode_parts(content, reading)


# --- tool results: messages with role `tool`, or the legacy role `function`


def _decode_result(wire: dict[str, Any], reading: Reading) -> Message:
    """Decode a tool message, which holds the result of one call."""
    content, wire_id, name = wire.get("content"), wire.get("tool_call_id"), wire.get("name")
    name = name if isinstance(name, str) else None
    given = wire_id if isinstance(wire_id, str) else None
    call_id = reading.calls.answer(given, name) or ""
    known, words = {"role"}, list[str]()
    if given is not None and call_id:
        known.add("tool_call_id")
    if isinstance(content, str) or content:
        known.add("content")
    elif "content" not in wire:
        words.append("-content")
    if name is None and wire_id is None:
        words.append("-name")
    if wire["role"] == "function":
        words.append("function")
    elif wire_id is None:
        words.append("tool")  # even if the call was a legacy `function_call`
    result = make_result(call_id, _read_result_content(content, reading), tool_name=name)
    return _made(_TOOL, (result,), wire, known, words)


def _read_result_content(content: Any, reading: Reading) -> str | tuple[ResultPart, ...]:
    if not is_list(content):
        return content if isinstance(content, str) else ()
    parts: list[ResultPart] = []
    for item in content:
        for part in decode_parts([item], reading)[:1]:
            if isinstance(part, Media):
                # The origin lets media of this dialect stay in tool messages; others' may not (W1).
                parts.append(part.replace(origin=reading.origin))
            elif isinstance(part, Text | Opaque):
                parts.append(part)
            else:
                parts.append(Opaque(NAME, item, origin=reading.origin))
    only = parts[0] if len(parts) == 1 else None
    if type(only) is Text and only.extras is EMPTY and only.cache is None:
        return only.text  # the normal form
    return tuple(parts)


# --- assistant messages

SECOND_AUDIO = "a message can have only one audio output: the first one is sent"


def _read_speech(wire: Any, reading: Reading, *, is_response: bool) -> list[AnyPart]:
    """Audio output: whole in a response, by its id in later requests."""
    if not is_object(wire) or not isinstance(wire.get("id"), str):
        return []
    is_whole = isinstance(wire.get("data"), str)
    part: Any = (SPEECH if is_whole else SPEECH_ID).read(wire, reading)
    if is_whole and not is_response:
        # A request needs only the id; one that had all fields is restored as it was.
        part = part.replace_unchecked(extras=with_word(part.extras, NAME, "whole"))
    return [part]


def _read_calls(wire: Any, reading: Reading) -> list[AnyPart]:
    return [decode_call(call, reading) for call in wire] if is_list(wire) else []


def _read_function_call(wire: Any, reading: Reading) -> list[AnyPart]:
    call = decode_function_call(wire, reading)
    return [] if call is None else [call]


_IN_REFUSAL = extras_of({}, NAME, ("refusal",))
_SLOTS: Mapping[str, Callable[[Any, Reading], list[AnyPart]]] = {
    "refusal": lambda wire, _: [Refusal(wire, extras=_IN_REFUSAL)] if isinstance(wire, str) else [],
    "audio": lambda wire, reading: _read_speech(wire, reading, is_response=False),
    "images": decode_images,
    EXECUTED_TOOLS: lambda wire, reading: decode_server_tools(wire, reading.origin),
    "tool_calls": _read_calls,
    "function_call": _read_function_call,
}
"""The fields after the content, by what reads them; empty if it can't: they stay in the extras."""
_OF_RESPONSE = {**_SLOTS, "audio": lambda wire, r: _read_speech(wire, r, is_response=True)}


def decode_assistant(
    wire: dict[str, Any], reading: Reading, *, is_response: bool = False
) -> Message:
    """Decode an assistant message whose origin is `reading.origin`."""
    used = {"role"} if wire.get("role") == "assistant" else set[str]()
    parts: list[AnyPart] = []
    if not wire.keys().isdisjoint(_THINKING):
        parts += decode_reasoning(wire, reading, used)
    if (content := wire.get("content")) == "" or content:
        used.add("content")
        # The origin lets media of this dialect stay in assistant messages; others' may not (W2).
        parts += [
            part.replace(origin=reading.origin) if isinstance(part, Media) else part
            for part in _read_content(content, reading)
        ]
    if any(map(is_sealed, parts)):
        reading.has_envelopes = True
    if _cited(parts, wire.get("annotations"), reading):
        used.add("annotations")
    for field, read in (_OF_RESPONSE if is_response else _SLOTS).items():
        if (value := wire.get(field)) and (found := read(value, reading)):
            used.add(field)
            parts += found
    words = absent(used, "role")
    if not is_response and wire.keys().isdisjoint(CONTENT_FIELDS):
        words.append(_NO_CONTENT)
    message = _made(_ASSISTANT, tuple(parts), wire, used, words)
    if message.extras is not EMPTY:
        message = with_digests(message, NAME, FIELD_PLACES)
    if reading.has_envelopes:
        reading.has_envelopes = False
        return message if is_response else unsealed_message(message, NAME)
    return message


def _cited(parts: list[AnyPart], annotations: Any, reading: Reading) -> bool:
    """Give the citations to the first text; without one they stay in the extras."""
    citations = decode_annotations(annotations)
    for index, part in enumerate(parts if citations else ()):
        if isinstance(part, Text):
            parts[index] = part.replace(citations=citations, origin=reading.origin)
            return True
    return False


def part_order(part: AnyPart) -> int:
    """The rank of a part in the order in which message fields are decoded."""
    words = words_of(part.extras, NAME)
    if isinstance(part, Thinking):
        return 1 if "content" in words else 0
    if isinstance(part, ToolCall) or "tool_calls" in words:
        return 6
    if isinstance(part, Refusal) and "refusal" in words:
        return 2
    if isinstance(part, Audio) and part.item_id is not None:
        return 3
    if "images" in words:
        return 4
    return 5 if isinstance(part, (ServerToolCall, ServerToolResult)) else 1


# --- writing

_HOISTED = "(attached to the next user message)"
_FOREIGN_SIGNATURE = "another provider's signature is left out"


def encode_messages(
    system: tuple[AnyPart, ...], messages: tuple[Message, ...], writing: ChatWriting
) -> list[dict[str, Any]]:
    """Encode messages, the system prompt first."""
    written: list[dict[str, Any]] = []
    content: list[Any] = []
    place, writing.place = writing.place, "system[{1}]"
    for writing.part, part in enumerate(system):
        _put_content(part, content, writing)
    if content:
        written.append({"role": "system", "content": encode_content(content)})
    writing.place = place
    fields = writing.target.fields
    is_choosy = bool(fields.refused) or fields.in_message is not None
    for index, message in enumerate(messages):
        start = len(written)
        writing.message, writing.origin = index, message.origin
        if message.role is _ASSISTANT:
            _flush(written, writing)
            body = encode_assistant(message, writing)
            if body.keys() != {"role"} or not message.parts:  # else none of its parts could be sent
                written.append(_with_content(body, message))
        else:
            _encode_other(message, written, writing)
        if is_choosy:
            written[start:] = [
                message_without_refused_fields(body, writing) if is_object(body) else body
                for body in written[start:]
            ]
    _flush(written, writing)
    return written


def _put_content(part: AnyPart, content: list[Any], writing: ChatWriting) -> None:
    """Write a part of a message that is not the assistant's."""
    if type(part) is Thinking and writing.is_own(part):  # Mistral allows it in any role
        _encode_chunk(part, content, writing)
    else:
        content += encode_part(part, writing)
        _lose_citations(part, writing)


def _encode_chunk(part: Thinking, content: list[Any], writing: ChatWriting) -> None:
    encode_thinking(part, content)
    if is_lost_in_chunk(part):
        writing.lose_here(SEALED_THINKING)


def _lose_citations(part: AnyPart, writing: ChatWriting) -> None:
    if type(part) is Text and part.citations:
        writing.lose_here("citations are only supported in assistant messages", ".citations")


def _encode_other(message: Message, written: list[dict[str, Any]], writing: ChatWriting) -> None:
    """Encode a non-assistant message: one message for each result, then one for the rest."""
    word, rest = None if message.role is _TOOL else _WORDS[message.role], list[Any]()
    for writing.part, part in enumerate(message.parts):
        if type(part) is ToolResult:
            written.append(_encode_result(part, message, writing))
        elif word is None:
            writing.lose_part(part)
        else:
            _put_content(part, rest, writing)
    if word is None and not message.parts:
        writing.lose(f"messages[{writing.message}]", "a tool message without a result is left out")
    if word is not None and (rest or not message.parts):
        _flush(written, writing)
        body: dict[str, Any] = {"role": word}
        if rest:
            body["content"] = encode_content(rest)
        if message.name is not None:
            body["name"] = message.name
        written.append(_with_content(with_overlay(body, message.extras, NAME), message))


def _with_content(body: dict[str, Any], message: Message) -> dict[str, Any]:
    """Add an empty text to a message without content, unless it was received so (W2)."""
    if not is_object(body):  # an unchanged original
        return body
    if body.keys().isdisjoint(CONTENT_FIELDS) and _NO_CONTENT not in words_of(message.extras, NAME):
        body["content"] = ""
    return body


def _encode_result(result: ToolResult, message: Message, writing: ChatWriting) -> dict[str, Any]:
    """Encode the tool message for a result."""
    call_id = writing.wire_ids.get(result.call_id, result.call_id)
    body: dict[str, Any] = {"role": "tool"}
    if result.call_id and call_id is not None:
        body["tool_call_id"] = call_id
    content = _encode_result_content(result, writing)
    if content != []:
        body["content"] = content
    if result.is_error:
        writing.lose_here(
            "the error flag of a result is not supported; only its text is sent", ".is_error"
        )
    name, words = message.name, words_of(message.extras, NAME)
    is_legacy_call = result.call_id in writing.legacy
    if "function" in words or (is_legacy_call and "tool" not in words):
        body["role"] = "function"
    if name is None and is_legacy_call and "-name" not in words:
        name = result.tool_name or ""
    if name is not None:
        body["name"] = name
    if len(message.parts) == 1 and message.extras is not EMPTY:
        body = with_overlay(body, message.extras, NAME)
        if "-content" in words:
            return body
    body.setdefault("content", "")
    return body


def _encode_result_content(result: ToolResult, writing: ChatWriting) -> str | list[dict[str, Any]]:
    if isinstance(result.content, str):
        return result.content or result.text  # structured data as JSON if there is no text
    items: list[dict[str, Any]] = []
    allowed = writing.target.media.in_results
    for index, part in enumerate(result.content):
        writing.item = index
        found = encode_part(part, writing)
        may_stay = writing.is_own(part) if allowed is None else allowed
        if found and isinstance(part, Media) and not may_stay:
            writing.hoisted += found
            writing.lose_here("media of a tool result are moved to a user message (W1)")
            found = [{"type": "text", "text": _HOISTED}]
        _lose_citations(part, writing)
        items += found
    writing.item = None
    return encode_content(items)


def _flush(written: list[dict[str, Any]], writing: ChatWriting) -> None:
    """Send media of tool results in a user message after all results of the turn (W1)."""
    if writing.hoisted:
        written.append({"role": "user", "content": list(writing.hoisted)})
        writing.hoisted.clear()


# --- assistant messages: each part to its field


def encode_assistant(message: Message, writing: ChatWriting) -> dict[str, Any]:
    """Encode an assistant message."""
    writing.origin = message.origin
    return _Answer(message, writing).write()


class _Answer:
    """The fields of an assistant message."""

    __slots__ = ("_body", "_content", "_lists", "_message", "_thinking", "_writing")

    def __init__(self, message: Message, writing: ChatWriting) -> None:
        self._message = message
        self._writing = writing
        has_role = "-role" not in words_of(message.extras, NAME)
        self._body: dict[str, Any] = {"role": "assistant"} if has_role else {}
        self._content: list[dict[str, Any]] = []
        self._thinking: list[Thinking] = []
        self._lists: dict[str, list[Any]] = {}

    def write(self) -> dict[str, Any]:
        body, message = self._body, self._message
        for self._writing.part, part in enumerate(message.parts):
            put = _PUT.get(type(part), _Answer.put_content)
            put(self, part)
        if self._thinking:
            encode_reasoning(self._thinking, body)
        if self._content:
            body["content"] = self._written_content()
        body.update(self._lists)
        if message.name is not None:
            body["name"] = message.name
        if message.extras is EMPTY:
            return body
        return with_overlay(body, without_edited(message, NAME, FIELD_PLACES), NAME)

    def _written_content(self) -> Any:
        if self._writing.is_response and not is_own(self._message.origin):
            # The content of a response is a string; lists are an extension of some servers.
            texts = [item.get("text") for item in self._content if type(item) is dict]
            if len(texts) == len(self._content) and all(isinstance(text, str) for text in texts):
                return "".join(map(str, texts))
        return encode_content(self._content)

    def put_text(self, part: Any) -> None:
        self.put_content(part)
        if part.citations:
            self._cite(part)
        # Only calls have signatures, in Google's extension field.
        if part.signature is not None and not self._writing.is_own(part):
            self._writing.lose_here(_FOREIGN_SIGNATURE, ".signature")

    def _cite(self, part: Text) -> None:
        is_ours = self._writing.is_own(part)
        for citation in part.citations if is_ours or self._writing.is_response else ():
            annotation = encode_annotation(citation, is_own=is_ours)
            if annotation is not None:
                self._list("annotations").append(annotation)
        is_whole = all(map(is_fully_supported, part.citations)) or not is_ours
        if len(self._lists.get("annotations", ())) < len(part.citations) or not is_whole:
            self._writing.lose_here("some citations are not supported", ".citations")

    def put_call(self, part: Any) -> None:
        if part.signature is not None and self._writing.is_foreign(part):
            self._writing.lose_here(_FOREIGN_SIGNATURE, ".signature")
        if is_legacy(part, self._writing) and "function_call" not in self._body:
            self._body["function_call"] = encode_function_call(part, self._writing)
            if part.signature is not None:
                self._writing.lose_here("the legacy function_call has no signature", ".signature")
        else:
            self._list("tool_calls").append(encode_call(part, self._writing))

    def put_thinking(self, part: Any) -> None:
        """Thinking is only sent back to this dialect; a response may show any provider's."""
        if self._writing.is_own(part):
            if "content" in words_of(part.extras, NAME):
                _encode_chunk(part, self._content, self._writing)
            else:
                self._thinking.append(part)
        elif self._writing.is_response and part.text:
            self._thinking.append(Thinking(part.text))
            if part.signature or part.data:
                self._writing.lose_here(
                    "the signature or encrypted data of another dialect's thinking is left out"
                )
        else:
            self._writing.lose_here("another provider's thinking can't be replayed")

    def put_refusal(self, part: Any) -> None:
        words = words_of(part.extras, NAME)
        if "refusal" in words or (self._writing.is_response and "content" not in words):
            before = self._body.get("refusal")
            self._body["refusal"] = before + part.text if isinstance(before, str) else part.text
        else:
            self.put_content(part)

    def put_audio(self, part: Any) -> None:
        speech = _encode_speech(part, self._writing)
        if speech is None:
            self.put_media(part)
        elif "audio" in self._body:
            self._writing.lose_here(SECOND_AUDIO)
        else:
            self._body["audio"] = speech
            if part.cache is not None:
                self._writing.lose_here("cache hints are not supported on audio output", ".cache")

    def put_media(self, part: Any) -> None:
        is_ours = self._writing.is_own(part)
        is_shown = self._writing.is_response and not is_ours and isinstance(part, Image)
        if is_shown or "images" in words_of(part.extras, NAME):
            self._list("images").extend(encode_part(part, self._writing))
        elif is_ours:
            self.put_content(part)
        else:
            self._writing.lose_here("assistant messages can't contain media (W2)")

    def put_server_tool(self, part: Any) -> None:
        if self._writing.is_own(part):
            encode_server_tool(part, self._list(EXECUTED_TOOLS))
        else:
            self._writing.lose_part(part)

    def put_content(self, part: Any) -> None:
        is_ours = type(part) is Opaque and part.dialect == NAME
        if is_ours and "tool_calls" in words_of(part.extras, NAME):
            self._list("tool_calls").append(part.payload)
        else:
            self._content += encode_part(part, self._writing)

    def _list(self, field: str) -> list[Any]:
        return self._lists.setdefault(field, [])


_PUT: dict[type, Callable[[_Answer, Any], None]] = {
    Text: _Answer.put_text,
    ToolCall: _Answer.put_call,
    Thinking: _Answer.put_thinking,
    Refusal: _Answer.put_refusal,
    Audio: _Answer.put_audio,
    **dict.fromkeys((Image, Video, File), _Answer.put_media),
    **dict.fromkeys((ServerToolCall, ServerToolResult), _Answer.put_server_tool),
}


def _encode_speech(part: Audio, writing: ChatWriting) -> dict[str, Any] | None:
    """Encode the `audio` of a message; None if the part can't be one."""
    if not writing.is_own(part):
        if not writing.is_response or part.data is None:
            return None
        # The SDKs' types require all fields.
        return {"id": "", "data": part.data, "expires_at": 0, "transcript": part.transcript or ""}
    if part.file_id is None and part.item_id is None:
        return None
    if part.file_id is None and not (writing.is_response or "whole" in words_of(part.extras, NAME)):
        return {"id": part.item_id}
    found: dict[str, Any] = (SPEECH if part.file_id is None else SPEECH_ID).write(part, writing)
    return found
