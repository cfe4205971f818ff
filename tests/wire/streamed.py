"""Streams of all dialects: encoded from events, decoded again, and generated at random."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import strategies as st

import dragoman
from dragoman import Audio, Image, MessageAccumulator, Refusal, Text, Thinking, ToolCall
from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.parts import Citation, Opaque, Origin, ServerToolCall, ServerToolResult
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCallDelta, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.losses import Loss
from dragoman.wire.streams import StreamDecoder, StreamEncoder


def encoder_of(dialect: str) -> StreamEncoder:
    """An encoder for complete streams: Chat's includes usage (W9)."""
    speaker: Any = dragoman.dialect(dialect)
    made: StreamEncoder = (
        speaker.stream_encoder(include_usage=True)
        if dialect == "openai-chat"
        else speaker.stream_encoder()
    )
    return made


def written(dialect: str, events: Iterable[Event]) -> tuple[bytes, list[Loss]]:
    """The encoded stream, and its losses."""
    encoder = encoder_of(dialect)
    stream = b"".join([*map(encoder.feed, events), encoder.close()])
    return stream, list(encoder.losses)


def read(dialect: str, *pieces: bytes) -> StreamDecoder:
    """A decoder that has read these bytes to their end."""
    decoder = dragoman.dialect(dialect).stream_decoder()
    for piece in pieces:
        decoder.feed(piece)
    decoder.close()
    return decoder


def folded(events: Iterable[Event]) -> Response:
    """The response that events add up to."""
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    return accumulator.response


# --- random events

_CITATION = Citation(kind="url_citation", url="https://a.example", title="A", start=0, end=1)
_PNG = "iVBORw0KGgo="
_WHOLE: tuple[AnyPart, ...] = (
    Thinking("", "c2VhbGVk", "redacted"),
    ServerToolCall("s1", "web_search", {"q": 1}),
    ServerToolResult("s1", "web_search", [{"url": "https://a.example"}]),
    Opaque("anthropic", {"type": "odd"}),
    Opaque("openai-responses", {"type": "odd", "id": "o1"}),
    Image(data=_PNG, mime="image/png"),
    Audio(data="AAAA", mime="audio/pcm"),
)
_NOTHING: dict[str, Any] = {}


class Script:
    """A stream in the making: its events, and the words that must arrive."""

    def __init__(self, home: str | None) -> None:
        self.origin = None if home is None else Origin(dialect=home)
        self.events: list[Event] = []
        self.parts: dict[tuple[int, int], AnyPart] = {}
        self.stopped: set[tuple[int, int]] = set()
        self.corrected: set[tuple[int, int]] = set()
        self.calls = 0
        self.has_deltas = False  # calls are either deltas or parts, never both
        self._words = 0

    def __repr__(self) -> str:
        return "\n".join(map(str, msgspec.to_builtins(self.events)))

    @property
    def has_called(self) -> bool:
        """Whether there are calls as parts."""
        return any(isinstance(part, ToolCall) for part in self.parts.values())

    def word(self) -> str:
        """A unique word."""
        self._words += 1
        return f"<{self._words}>"

    def of(self, place: tuple[int, int]) -> list[Event]:
        """The events of one part."""
        kinds = (PartStart, PartDelta, PartStop)
        return [event.replace(choice=0) for event in self.events
                if isinstance(event, kinds) and (event.choice, event.index) == place]  # fmt: skip

    def start(self, choice: int, part: AnyPart) -> None:
        """Start a part."""
        place = (choice, sum(1 for known, _ in self.parts if known == choice))
        self.parts[place] = part
        self.events.append(PartStart(place[1], part, choice))

    def grow(self, place: tuple[int, int], **more: Any) -> None:
        """Extend a part."""
        self.events.append(PartDelta(place[1], choice=place[0], **more))

    def stop(self, place: tuple[int, int], final: AnyPart | None) -> None:
        """End a part."""
        self.stopped.add(place)
        self.events.append(PartStop(place[1], final, place[0]))


def _new_part(draw: Any, script: Script) -> AnyPart:
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 5)) == 0:
        fields["signature"] = "c2ln"
    if draw(st.integers(0, 5)) == 0:
        fields["origin"] = Origin(dialect=draw(st.sampled_from(dragoman.dialects())))
    text = script.word() if draw(st.booleans()) else ""
    kind = draw(st.sampled_from(["text", "thinking", "refusal", "call", "whole"]))
    if kind == "text":
        cited = (_CITATION,) if draw(st.integers(0, 3)) == 0 else ()
        return Text(text, cited, **fields)
    if kind == "thinking":
        return Thinking(text, form=draw(st.sampled_from(["full", "summary"])), **fields)
    if kind == "refusal":
        return Refusal(text)
    if kind == "call" and not script.has_deltas:
        script.calls += 1
        raw = draw(st.sampled_from(["", "{", '{"a": 1}', None]))
        known: dict[str, Any] = {"raw": raw} if raw is not None else {"input": {}}
        return make_call(f"call_{script.calls}", f"tool_{script.calls}", **known, **fields)
    whole: AnyPart = draw(st.sampled_from(_WHOLE))
    return whole.replace(**fields)


def _grow(draw: Any, script: Script, place: tuple[int, int]) -> None:
    part = script.parts[place]
    if isinstance(part, ToolCall):
        script.grow(place, text=draw(st.sampled_from(['"b": ', "2", "}", '{"c": "\\u00'])))
    elif isinstance(part, Thinking) and part.data is not None:
        script.grow(place, data="eA==")
    elif isinstance(part, (Text, Thinking, Refusal)):
        more: dict[str, Any] = {"text": script.word()}
        if isinstance(part, Text):
            more |= draw(st.sampled_from([_NOTHING, _NOTHING, {"citations": (_CITATION,)}]))
        elif isinstance(part, Thinking):
            more |= draw(st.sampled_from([_NOTHING, {"signature": "eA=="}]))
        if place in script.stopped and len(more) > 1:
            del more["text"]  # late events are more often citations or seals
        script.grow(place, **more)
    else:
        script.grow(place, extras={"openai-chat": {"late": 1}})


def _stop(draw: Any, script: Script, place: tuple[int, int]) -> None:
    part = folded(script.of(place)).message.parts[0]
    form = draw(st.sampled_from(["none", "none", "same", "more", "other"]))
    final: AnyPart | None = None if form == "none" else part
    if form == "more" and isinstance(part, Thinking) and part.data is not None:
        final = part.replace(data="YWxs")
    elif form == "more" and isinstance(part, (Text, Thinking, Refusal)):
        final = part.replace(text=part.text + script.word())
    elif form == "more" and isinstance(part, ToolCall):
        final = part.replace(raw='{"z": 1}', input=None)
    elif form == "other":
        final = Text(script.word())
        script.corrected.add(place)
    script.stop(place, final)


def _call(draw: Any, script: Script, choice: int) -> None:
    name = call_id = None
    if draw(st.booleans()) or not script.has_deltas:
        script.has_deltas = True
        script.calls += 1
        name = f"tool_{script.calls}"
        call_id = draw(st.sampled_from([f"call_{script.calls}", None]))
    index = draw(st.sampled_from([None, 0, 1, 2]))
    arguments = draw(st.sampled_from([None, "", '{"a": 1}', '{"b"', ': "x"}']))
    signature = draw(st.sampled_from([None, None, None, "c2ln"]))
    script.events.append(
        ToolCallDelta(index, call_id, name, arguments, choice, signature=signature)
    )


def _aside(draw: Any, script: Script, step: str) -> list[Event]:
    """An event beside the parts."""
    if step == "usage":
        return [UsageUpdate(Usage(draw(st.integers(0, 9)), 2))]
    if step == "start":
        model = draw(st.sampled_from([None, "m"]))
        return [ResponseStart(id="r1", model=model, origin=script.origin)]
    if step == "opaque":
        home = draw(st.sampled_from(dragoman.dialects()))
        return [OpaqueEvent(home, {"type": "odd", "event": "odd"})]
    is_error = step == "error" and draw(st.integers(0, 5)) == 0
    return [StreamError("it broke", "odd")] if is_error else []


_STEPS = ["part", "part", "grow", "grow", "grow", "stop", "call", "usage", "finish", "start",
          "opaque", "error"]  # fmt: skip


@st.composite
def scripts(draw: Any) -> Script:
    """Random streams with all kinds of events, in any order."""
    script = Script(draw(st.sampled_from([None, *dragoman.dialects()])))
    choices = st.sampled_from([0, 0, 0, 1])
    finished: set[int] = set()
    if draw(st.booleans()):
        script.events.append(ResponseStart(id="r1", model="m", origin=script.origin))
    for step in draw(st.lists(st.sampled_from(_STEPS), max_size=25)):
        choice = draw(choices)
        places = [place for place in sorted(script.parts)
                  if place[0] not in finished and place not in script.corrected]  # fmt: skip
        if step == "part" and choice not in finished:
            script.start(choice, _new_part(draw, script))
        elif step == "grow" and places:
            _grow(draw, script, draw(st.sampled_from(places)))
        elif step == "stop" and places:
            _stop(draw, script, draw(st.sampled_from(places)))
        elif step == "call" and choice not in finished and not script.has_called:
            _call(draw, script, choice)
        elif step == "finish":
            finished.add(choice)
            finish = draw(st.sampled_from(list(FinishReason)))
            script.events.append(ChoiceFinish(finish, choice=choice))
        else:
            script.events += _aside(draw, script, step)
    if draw(st.integers(0, 5)):
        script.events.append(ResponseEnd())
    return script
