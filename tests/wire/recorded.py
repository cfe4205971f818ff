"""The recorded bodies that each dialect must round-trip, and how they are compared.

`python -m tests.wire.recorded` prints how much of the corpus round-trips, and which share of its
bytes is in extras instead of in the model's own fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import msgspec

import dragoman
from dragoman.errors import WireError
from dragoman.model.events import Event
from dragoman.model.frozen import EMPTY
from dragoman.model.json_progress import is_beginning
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.model.value import Value
from dragoman.wire.dialect import Dialect
from dragoman.wire.fitting.settings import missing_conversation
from dragoman.wire.streams import StreamDecoder
from dragoman.wire.target import Target
from tests.corpus import Corpus, CorpusNotFoundError, Recording, Tier, current_tier

ENDPOINTS = {
    "openai-chat": re.compile(r"/chat/completions$"),
    "anthropic": re.compile(r"/v1/messages$|:(streamR|r)awPredict$"),
    "openai-responses": re.compile(r"/responses$"),
    "gemini": re.compile(r":(streamG|g)enerateContent$"),
    "ollama": re.compile(r"^/api/chat$"),
}
SPOKEN_BY = {
    "openai-chat": ("openai_chat", "groq", "mistral", "other_openai_compatible"),
    "anthropic": ("anthropic",),
    "openai-responses": ("openai_responses",),
    "gemini": ("gemini",),
    "ollama": ("ollama",),
}
_ANTHROPIC_HOSTS = frozenset({"api.anthropic.com", ""})
_FAULTY = {
    "anthropic/dd-trace-py__cassettes-anthropic_completion_tools_call_with_tool_result_stream_helper"
    "__00.json": "its ids were replaced by hand: the result answers a call that is not there",
}
# The one normal form: a list of one plain text equals the text.
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


def keeps_items(recording: Recording) -> bool:
    """Whether a Responses host stores items: OpenAI's do; a recording of vLLM says it is one."""
    return recording.row.host.endswith("openai.com") and "__vllm" not in recording.row.file


@dataclass(frozen=True)
class Body:
    """A recorded body and how a dialect decodes and encodes it."""

    dialect: Dialect
    kind: Literal["request", "response"]
    wire: Mapping[str, Any]
    path: str
    recording: Recording

    @property
    def target(self) -> Target:
        """Its target: compatible hosts accept what the vendor does not (W5, W54)."""
        folder = self.dialect.name.replace("-", "_")
        vendors: Target = import_module(f"dragoman.wire.{folder}.dialect").TARGET
        if self.recording.row.provider_api != folder:
            return vendors.with_flags({"ids.max_length": 256, "schemas.checks_strict": False})
        if vendors.thinking.verifies_signatures and self.recording.row.host not in _ANTHROPIC_HOSTS:
            return vendors.with_flags(
                {"thinking.verifies_signatures": False}
            )  # Ollama, for example, has no seals
        if vendors.state.verifies_items and not keeps_items(self.recording):
            return vendors.with_flags(
                {"state.verifies_items": False, "sampling.min_output_tokens": 0}
            )
        return vendors

    def decode(self) -> Value:
        """The decoded body."""
        if self.kind == "request":
            return self.dialect.decode_request(self.wire, path=self.path)
        return self.dialect.decode_response(self.wire)

    def encode(self, value: Any) -> dict[str, Any]:
        """The encoded value."""
        if self.kind == "request":
            return self.dialect.encode_request(value, self.target).body
        return self.dialect.encode_response(value).body


def bodies(corpus: Corpus, dialect: str, tier: Tier | None = None) -> Iterator[Body]:
    """The accepted requests and plain 200 responses of a dialect."""
    speaker = dragoman.dialect(dialect)
    for recording in recordings(corpus, dialect, tier):
        if recording.row.file in _FAULTY:
            continue
        path = recording.request_path
        if isinstance(recording.request_body, dict):
            yield Body(speaker, "request", recording.request_body, path, recording)
        answer = recording.response_body
        if isinstance(answer, dict) and not answer.get("error"):
            yield Body(speaker, "response", answer, path, recording)


def recordings(corpus: Corpus, dialect: str, tier: Tier | None = None) -> Iterator[Recording]:
    """The recordings of a dialect's own endpoint with status 200."""
    for recording in corpus.select(provider_api=SPOKEN_BY[dialect], status=200, tier=tier):
        if ENDPOINTS[dialect].search(recording.request_path.partition("?")[0]):
            yield recording


def streams(corpus: Corpus, dialect: str) -> Iterator[tuple[str, bytes]]:
    """The recorded streams of a dialect, each after its file's name."""
    for recording in recordings(corpus, dialect):
        if recording.response_stream is not None:
            yield recording.row.file, recording.response_stream


def decoded(
    corpus: Corpus, dialect: str
) -> Iterator[tuple[str, bytes, StreamDecoder, list[Event]]]:
    """The recorded streams that can be decoded; one of them is broken."""
    for file, stream in streams(corpus, dialect):
        decoder = dragoman.dialect(dialect).stream_decoder()
        with suppress(WireError):
            events = [*decoder.feed(stream), *decoder.close()]
            yield file, stream, decoder, events


def runnable(message: Message) -> list[ToolCall]:
    """The calls of a response that a client may run: those that were not cut off (I7)."""
    is_cut_off = message.finish is not None and message.finish.is_cut_off
    return [
        call
        for call in message.tool_calls
        if not (call.raw_arguments == "" and is_cut_off and call is message.parts[-1])
        and (call.object_arguments() is not None or not is_cut_off)
        and not is_beginning(call.raw_arguments)
    ]


def has_conversation(request: Request, dialect: str, target: Target | None = None) -> bool:
    """Whether there is something to send in a dialect: not all of it is another provider's."""
    return missing_conversation(request, target or dragoman.dialect(dialect).target) is None


def normal(wire: Any) -> Any:
    """A body in the documented normal form: a list of one plain text is that text."""
    if isinstance(wire, Mapping):
        return {key: normal(value) for key, value in wire.items()}
    if isinstance(wire, (list, tuple)):
        if len(wire) == 1 and isinstance(wire[0], Mapping) and _is_plain_text(wire[0]):
            return wire[0]["text"]
        return [normal(item) for item in wire]
    return (type(wire).__name__, wire) if isinstance(wire, (bool, int, float)) else wire


def _is_plain_text(part: Mapping[str, Any]) -> bool:
    return (
        isinstance(part.get("text"), str)
        and part.keys() <= {"type", "text"}
        and (part.get("type") is None or str(part["type"]) in _TEXT_TYPES)
    )


def rewritten(value: Any, rewrite: Callable[[Value], Value]) -> Any:
    """A value with every value inside it rewritten, from the inside out."""
    if isinstance(value, tuple):
        return tuple(rewritten(item, rewrite) for item in value)
    if not isinstance(value, Value):
        return value
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if isinstance(old, (Value, tuple)):
            new = rewritten(old, rewrite)
            if new is not old:
                changes[name] = new
    return rewrite(msgspec.structs.replace(value, **changes) if changes else value)


def without_extras(value: Any) -> Any:
    """A value without any extras: only the model's own fields."""
    return rewritten(
        value, lambda v: v.replace(extras=EMPTY) if "extras" in v.__struct_fields__ else v
    )


def bytes_in_extras(value: Any) -> int:
    """The number of JSON bytes in extras and opaque payloads."""
    total = 0

    def count(found: Value) -> Value:
        nonlocal total
        for name in ("extras", "payload"):
            if name in found.__struct_fields__ and getattr(found, name):
                total += len(msgspec.json.encode(getattr(found, name)))
        return found

    rewritten(value, count)
    return total


def main() -> None:
    """Print the figures."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as reason:
        print(f"recorded traffic: skipped, {reason}")
        return
    print(
        f"recorded traffic, tier {current_tier()}: what comes back whole, and its share in extras"
    )
    for dialect in dragoman.dialects():
        for kind in ("request", "response"):
            whole = total = extra = size = 0
            for body in bodies(corpus, dialect):
                if body.kind != kind:
                    continue
                value = body.decode()
                total += 1
                whole += normal(body.encode(value)) == normal(body.wire)
                extra += bytes_in_extras(value)
                size += len(msgspec.json.encode(body.wire))
            share = extra / size if size else 0
            print(f"  {dialect:17} {kind + 's':10} {whole:4} of {total:4}   {share:6.1%} in extras")
    print(f"requests that take the lane, to {' and '.join(LANE_TARGETS)}, when their head is known")
    for dialect in dragoman.dialects():
        took, total = lane_share(corpus, dialect)
        print(f"  {dialect:17} {took:4} of {total:4} requests take the lane")


LANE_TARGETS = ("anthropic", "openai-responses")
"""One of them at least is another dialect than the request's."""


def lane_share(corpus: Corpus, dialect: str) -> tuple[int, int]:
    """How many requests of a dialect take the lane, for two targets; and how many can."""
    took = total = 0
    for body in bodies(corpus, dialect):
        if body.kind != "request":
            continue
        raw = msgspec.json.encode(body.wire)
        for target in LANE_TARGETS:
            total += 1
            took += _takes_lane(raw, dialect, target, body.path)
    return took, total


def _takes_lane(raw: bytes, dialect: str, target: str, path: str) -> bool:
    """Whether a request takes the lane the second time: at first its head is new."""
    try:
        for _ in range(2):
            dragoman.translate(raw, source=dialect, target=target, path=path)
        return dragoman.translate(raw, source=dialect, target=target, path=path).is_raw
    except dragoman.DragomanError:
        return False


if __name__ == "__main__":
    main()
