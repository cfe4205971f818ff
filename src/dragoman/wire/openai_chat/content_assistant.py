"""Assistant messages: what the model said, thought, refused and called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.envelope import is_sealed
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.content import (
    decode_annotations,
    decode_parts,
    encode_annotation,
    encode_content,
    encode_part,
    is_said_whole,
)
from dragoman.wire.openai_chat.content_thinking import (
    SEALED_THINKING,
    decode_reasoning,
    encode_reasoning,
    encode_thinking,
    is_sealed_thinking,
)
from dragoman.wire.openai_chat.dialect import (
    NAME,
    ChatWriting,
    absent,
    is_own,
    without_absent,
)
from dragoman.wire.openai_chat.tools_calls import (
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
from dragoman.wire.unsealing import unsealed_message

# --- what most assistant messages are, a text and calls and nothing else: the quick way in and out

_NO_CONTENT = extras_of({"content": None}, NAME)


def decode_plain(wire: dict[str, Any], reading: Reading) -> Message | None:
    """A message with a text, calls, or both; None where there is more to it."""
    if wire.get("role") != "assistant":
        return None
    content, calls, size = wire.get("content"), wire.get("tool_calls"), len(wire)
    if type(content) is str:
        if size == 2:  # noqa: PLR2004 - role and content
            return make_message(_ASSISTANT, (Text(content),))
        if size == 3 and is_list(calls) and calls:  # noqa: PLR2004 - and calls
            made = [decode_call(call, reading) for call in calls]
            return make_message(_ASSISTANT, (Text(content), *made))
        return None
    has_null = content is None and "content" in wire
    if type(calls) is not list or not calls or size != 2 + has_null:
        return None
    made = [decode_call(call, reading) for call in calls]
    extras = _NO_CONTENT if has_null else EMPTY
    return make_message(_ASSISTANT, tuple(made), None, "", EMPTY, extras)


def encode_plain(message: Message, writing: ChatWriting) -> dict[str, Any] | None:
    """The message for a text, calls, or both; None where there is more to it."""
    extras = message.extras
    if message.name is not None or (extras is not EMPTY and extras is not _NO_CONTENT):
        return None
    body: dict[str, Any] = {"role": "assistant"}
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if part.signature is not None:
            return None
        if type(part) is ToolCall and part.wire_id is UNSET:
            calls.append(encode_call(part, writing))
        elif type(part) is Text and len(body) == 1 and not calls:
            if part.extras is not EMPTY or part.citations or part.cache is not None:
                return None
            body["content"] = part.text
        else:
            return None
    if extras is _NO_CONTENT:
        body.setdefault("content", None)
    if calls:
        body["tool_calls"] = calls
    return body


# --- an assistant's spoken answer: whole in a response, by its id in later requests

_CONTENT = frozenset({"flat", "-format"})  # how only a part of the content is spelled


def decode_speech(wire: Any, origin: Origin | None, *, is_response: bool) -> list[AnyPart]:
    """The sound in `audio`; none where it is malformed."""
    if not is_object(wire) or not isinstance(speech_id := wire.get("id"), str):
        return []
    data, transcript = wire.get("data"), wire.get("transcript")
    if not isinstance(data, str):
        return [Audio(file_id=speech_id, origin=origin, extras=overlay_of(wire, ("id",), NAME))]
    known = ("id", "data", "transcript") if isinstance(transcript, str) else ("id", "data")
    return [
        Audio(
            data=data,
            transcript=transcript if isinstance(transcript, str) else None,
            item_id=speech_id,
            origin=origin,
            # A request needs the id only; where one has it all, it is sent so again.
            extras=overlay_of(wire, known, NAME, words=() if is_response else ("whole",)),
        )
    ]


def encode_speech(part: Audio, writing: ChatWriting, *, is_own: bool) -> dict[str, Any] | None:
    """The `audio` of a message; None where it can't be one."""
    if is_own and part.file_id is not None:
        return with_overlay({"id": part.file_id}, part.extras, NAME)
    if is_own and part.item_id is not None:
        if not writing.is_response and "whole" not in words_of(part.extras, NAME):
            return {"id": part.item_id}
        body: dict[str, Any] = {"id": part.item_id, "data": part.data}
        if part.transcript is not None:
            body["transcript"] = part.transcript
        return with_overlay(body, part.extras, NAME)
    if is_own or not writing.is_response or part.data is None:
        return None
    # The SDKs' type demands all of them.
    return {"id": "", "data": part.data, "expires_at": 0, "transcript": part.transcript or ""}


def decode_speech_delta(wire: dict[str, Any]) -> dict[str, Any]:
    """A piece of `audio`: more of the sound (`data`) or of its words (`text`), its id, and more."""
    growth: dict[str, Any] = {}
    known: set[str] = set()
    for key, name in (("id", "id"), ("data", "data"), ("transcript", "text")):
        if isinstance(wire.get(key), str):
            growth[name] = wire[key]
            known.add(key)
    extras = overlay_of(wire, known, NAME)
    return {**growth, "extras": extras} if extras else growth


def is_speech(part: Audio) -> bool:
    """Whether a sound is what the model says, not a part of the content as Mistral may have it."""
    is_content = part.mime is not None or not _CONTENT.isdisjoint(words_of(part.extras, NAME))
    return part.url is None and part.file_id is None and not is_content


def encode_speech_delta(part: Audio) -> dict[str, Any]:
    """A piece of `audio`."""
    fields = {"id": part.item_id, "data": part.data or None, "transcript": part.transcript}
    return with_overlay(
        {key: value for key, value in fields.items() if value is not None}, part.extras, NAME
    )


# --- assistant messages

_ASSISTANT = Role.ASSISTANT
_RARE = ("refusal", "annotations", "audio", "images", EXECUTED_TOOLS)
SAID = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
"""The fields of which a message needs one (W2)."""
NO_CONTENT = "-content"
"""The word for a message that had none of them."""
_SEALED = "another provider's seal has no place here"
_THINKING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
FIELD_PLACES: Places = {
    **dict.fromkeys(_THINKING, f"{PARTS}Thinking"),
    "refusal": f"{PARTS}Refusal",
    "audio": f"{PARTS}Audio",
    "images": f"{PARTS}Image",
    EXECUTED_TOOLS: f"{PARTS}ServerToolCall",
}


def decode_assistant(
    wire: dict[str, Any], reading: Reading, *, is_response: bool = False
) -> Message:
    """An assistant message; `reading.origin` says where it came from."""
    message = decode_plain(wire, reading)
    if message is None:
        message = _Reader(wire, reading, is_response=is_response).read()
    if reading.has_envelopes:
        reading.has_envelopes = False
        if not is_response:
            return unsealed_message(message)
    return message


class _Reader:
    """Takes a message apart, and remembers which of its fields were understood."""

    __slots__ = ("_is_response", "_parts", "_reading", "_used", "_wire")

    def __init__(self, wire: dict[str, Any], reading: Reading, *, is_response: bool) -> None:
        self._wire = wire
        self._reading = reading
        self._is_response = is_response
        # Nobody else answers: what a response says of the role instead is kept beside it.
        self._used = {"role"} if wire.get("role") == "assistant" else set[str]()
        self._parts: list[AnyPart] = []

    def read(self) -> Message:
        wire = self._wire
        if not wire.keys().isdisjoint(_THINKING):
            self._parts += decode_reasoning(wire, self._reading.origin, self._used)
            self._reading.has_envelopes = any(map(is_sealed, self._parts))
        self._read_content()
        if any(map(wire.get, _RARE)):
            self._read_rare()
        self._read_calls()
        name = wire.get("name")
        if isinstance(name, str):
            self._used.add("name")
        else:
            name = None
        words = absent(self._used, "role")
        if not self._is_response and wire.keys().isdisjoint(SAID):
            words.append(NO_CONTENT)
        is_whole = len(wire) == len(self._used) and not words
        extras = EMPTY if is_whole else overlay_of(wire, self._used, NAME, words=words)
        message = make_message(_ASSISTANT, tuple(self._parts), name, extras=extras)
        return message if extras is EMPTY else with_digests(message, NAME, FIELD_PLACES)

    def _read_content(self) -> None:
        content = self._wire.get("content")
        if isinstance(content, str):
            self._used.add("content")
            self._parts.append(Text(content))
        elif is_list(content) and content:
            self._used.add("content")
            self._parts += [
                # The wire's own assistants may show media; others' may not (W2).
                part.replace(origin=self._reading.origin) if isinstance(part, Media) else part
                for part in decode_parts(content, self._reading.origin)
            ]

    def _read_rare(self) -> None:
        """The fields that most messages lack or have as null."""
        wire, origin = self._wire, self._reading.origin
        self._cite(decode_annotations(wire.get("annotations")))
        refusal = wire.get("refusal")
        if refusal and isinstance(refusal, str):
            self._take("refusal", [Refusal(refusal, extras=extras_of({}, NAME, ("refusal",)))])
        self._take("audio", decode_speech(wire.get("audio"), origin, is_response=self._is_response))
        images = wire.get("images")
        shown = decode_parts(images, origin) if is_list(images) else []
        if all(isinstance(part, Image) for part in shown):
            marked = [
                part.replace(origin=origin, extras=with_word(part.extras, NAME, "images"))
                for part in shown
            ]
            self._take("images", marked)
        self._take(EXECUTED_TOOLS, decode_server_tools(wire.get(EXECUTED_TOOLS), origin))

    def _take(self, field: str, parts: list[AnyPart]) -> None:
        if parts:
            self._used.add(field)
            self._parts += parts

    def _cite(self, citations: tuple[Any, ...]) -> None:
        """Hang the annotations on the text they are about; without one they stay in the extras."""
        for index, part in enumerate(self._parts):
            if citations and isinstance(part, Text):
                self._parts[index] = part.replace(citations=citations, origin=self._reading.origin)
                self._used.add("annotations")
                return

    def _read_calls(self) -> None:
        calls = self._wire.get("tool_calls")
        if is_list(calls) and calls:
            self._used.add("tool_calls")
            self._parts += [decode_call(call, self._reading) for call in calls]
        call = decode_function_call(self._wire.get("function_call"), self._reading)
        if call is not None:
            self._take("function_call", [call])


def place_of(part: AnyPart) -> int:
    """Where a part stands in the order in which a message is read."""
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


def encode_assistant(message: Message, writing: ChatWriting) -> dict[str, Any]:
    """An assistant message."""
    writing.origin = message.origin
    plain = encode_plain(message, writing)
    return plain if plain is not None else _Writer(message, writing).write()


class _Writer:
    """Puts each part where the wire has it."""

    __slots__ = ("_body", "_content", "_lists", "_message", "_thinking", "_writing")

    def __init__(self, message: Message, writing: ChatWriting) -> None:
        self._message = message
        self._writing = writing
        self._body: dict[str, Any] = {"role": "assistant"}
        if message.extras is not EMPTY:
            without_absent(self._body, message.extras)
        self._content: list[dict[str, Any]] = []
        self._thinking: list[Thinking] = []
        self._lists: dict[str, list[Any]] = {}

    def write(self) -> dict[str, Any]:
        body, message = self._body, self._message
        for self._writing.part, part in enumerate(message.parts):
            put = _PLACES.get(type(part), _Writer.put_content)
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
            # A response's content is a string; lists are some servers' own.
            texts = [item.get("text") for item in self._content if type(item) is dict]
            if len(texts) == len(self._content) and all(isinstance(text, str) for text in texts):
                return "".join(map(str, texts))
        return encode_content(self._content)

    def put_text(self, part: Any) -> None:
        if part.extras is EMPTY and part.cache is None:
            self._content.append({"type": "text", "text": part.text})
        else:
            self._content += encode_part(part, self._writing)
        if part.citations:
            self._cite(part)
        self._note_seal(part)

    def _note_seal(self, part: AnyPart) -> None:
        """Note another provider's signature: only calls have some, in Google's own field."""
        if part.signature is not None and not self._writing.is_own(part):
            self._writing.lose_here(_SEALED, ".signature")

    def _cite(self, part: Text) -> None:
        is_ours = self._writing.is_own(part)
        for citation in part.citations if is_ours or self._writing.is_response else ():
            annotation = encode_annotation(citation, is_own=is_ours)
            if annotation is not None:
                self._lists.setdefault("annotations", []).append(annotation)
        is_whole = all(map(is_said_whole, part.citations)) or not is_ours
        if len(self._lists.get("annotations", ())) < len(part.citations) or not is_whole:
            self._writing.lose_here("not all can be written here", ".citations")

    def put_call(self, part: Any) -> None:
        if self._writing.origin_of(part) is not None:  # else whoever set the signature means it
            self._note_seal(part)
        if is_legacy(part, self._writing) and "function_call" not in self._body:
            self._body["function_call"] = encode_function_call(part, self._writing)
            if part.signature is not None:
                self._writing.lose_here("the old form of calls has none", ".signature")
        else:
            calls = self._lists.setdefault("tool_calls", [])
            calls.append(encode_call(part, self._writing))

    def put_thinking(self, part: Any) -> None:
        """Thinking goes back only where it came from; a response may show anybody's."""
        if self._writing.is_own(part):
            if "content" not in words_of(part.extras, NAME):
                self._thinking.append(part)
                return
            encode_thinking(part, self._content)
            if is_sealed_thinking(part):
                self._writing.lose_here(SEALED_THINKING)
        elif self._writing.is_response and part.text:
            self._thinking.append(Thinking(part.text))
            if part.signature or part.data:
                self._writing.lose_here("another dialect's sealed thinking is left out")
        else:
            self._writing.lose_here("another dialect's thinking can't be replayed here")

    def put_refusal(self, part: Any) -> None:
        words = words_of(part.extras, NAME)
        if "refusal" in words or (self._writing.is_response and "content" not in words):
            self._body["refusal"] = part.text
        else:
            self.put_content(part)

    def put_audio(self, part: Any) -> None:
        speech = encode_speech(part, self._writing, is_own=self._writing.is_own(part))
        if speech is not None:
            self._body["audio"] = speech
            if part.cache is not None:
                self._writing.lose_here("an answer has no breakpoints", ".cache")
        else:
            self.put_media(part)

    def put_media(self, part: Any) -> None:
        is_ours = self._writing.is_own(part)
        is_shown = self._writing.is_response and not is_ours and isinstance(part, Image)
        if is_shown or "images" in words_of(part.extras, NAME):
            found = encode_part(part, self._writing)
            self._lists.setdefault("images", []).extend(found)
        elif is_ours:
            self.put_content(part)
        else:
            self._writing.lose_here("an assistant's message holds no media here (W2)")

    def put_server_tool(self, part: Any) -> None:
        if self._writing.is_own(part):
            encode_server_tool(part, self._lists.setdefault(EXECUTED_TOOLS, []))
        else:
            self._writing.lose_part(part)

    def put_content(self, part: AnyPart) -> None:
        if (
            type(part) is Opaque
            and part.dialect == NAME
            and "tool_calls" in words_of(part.extras, NAME)
        ):
            self._lists.setdefault("tool_calls", []).append(part.payload)
        else:
            self._content += encode_part(part, self._writing)


_PLACES: dict[type, Callable[[_Writer, Any], None]] = {
    Text: _Writer.put_text,
    ToolCall: _Writer.put_call,
    Thinking: _Writer.put_thinking,
    Refusal: _Writer.put_refusal,
    Audio: _Writer.put_audio,
    Image: _Writer.put_media,
    Video: _Writer.put_media,
    File: _Writer.put_media,
    ServerToolCall: _Writer.put_server_tool,
    ServerToolResult: _Writer.put_server_tool,
}
