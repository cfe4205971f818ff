"""Malformed bodies, and everything that the library can do with one.

`python -m tests.wire.mutations --seconds 600 --seed 1` mutates recordings, our own fixtures and
odd bodies, and prints every class of exception that is not ours, once each with the seed that
reproduces it. Excessive memory or time is reported in the same way.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
import resource
import signal
import sys
import time
import traceback
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import dragoman
from dragoman import DragomanError, Encoded, Message, Messages, Request, Response
from dragoman.model.events import Event
from dragoman.model.frozen import frozen_hook
from dragoman.wire.context import Context
from dragoman.wire.envelope import _MAGIC, _checksum  # pyright: ignore[reportPrivateUsage]
from tests.corpus import Corpus, CorpusNotFoundError, Recording, Tier
from tests.wire.schemas.hostile import FAMILIES

_FIXTURES = Path(__file__).parent.parent / "fixtures"
_WIRE = Path(dragoman.__file__).parent / "wire"
_LARGEST = 30_000
_MEMORY = 2 * 2**30
"""In bytes, for the whole run."""
_PATIENCE = 60
"""In seconds, for one mutation."""
GEMINI_PATH = "/v1beta/models/m:generateContent"
_HOSTS = (("groq", "m"), ("mistral", "m"), ("openrouter", "m"), ("google", "gemini-1.5-pro"))

DIALECTS = dragoman.dialects()
_EVENT: Any = Event


class Seed(NamedTuple):
    """Something to mutate, and its kind."""

    kind: str
    dialect: str
    value: Any


# --- inserted values

_ENDINGS = ("", " instead", " shape", " absent", " meant", " spelling")
"""Of the keys in extras, after the dialect; all but the last are of earlier versions."""


@cache
def words() -> list[str]:
    """Every short text in the code of the wire layer: fields, types, and names in extras."""
    found: set[str] = set()
    for file in _WIRE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    plain = {word for word in found if 0 < len(word) <= 40 and "\n" not in word}
    ours = {f"{name}{end}" for name in DIALECTS for end in _ENDINGS}
    return sorted(plain | ours)


def _deep(value: Any, levels: int, key: str | None) -> Any:
    for _ in range(levels):
        value = [value] if key is None else {key: value}
    return value


_ODD: list[Callable[[random.Random], Any]] = [
    lambda _: None,
    lambda _: True,
    lambda _: False,
    lambda _: 0,
    lambda _: -1,
    lambda _: 5,
    lambda _: 2**70,
    lambda _: 10**400,
    lambda _: 10**5000,
    lambda _: 0.5,
    lambda _: 1e308,
    lambda _: float("nan"),
    lambda _: float("inf"),
    lambda _: "",
    lambda _: " ",
    lambda _: "x",
    lambda _: "\ud800",
    lambda _: "\x00",
    lambda _: "5",
    lambda _: "x" * 5_000,
    lambda _: "{",
    lambda _: "data:image/png;base64,!!",
    lambda _: [],
    lambda _: {},
    lambda _: [None],
    lambda _: [[]],
    lambda _: [5],
    lambda _: ["x"],
    lambda _: [{}],
    lambda _: {"": None},
    lambda _: {"type": "text"},
    lambda _: {"type": 5},
    lambda _: {"type": []},
    lambda _: {"type": {}},
    lambda rng: rng.choice(words()),
    lambda rng: rng.choice(words()),
    lambda rng: {rng.choice(words()): odd(rng)},
    lambda rng: {rng.choice(words()): odd(rng), rng.choice(words()): odd(rng)},
    lambda rng: [odd(rng), odd(rng)],
    lambda rng: [[rng.choice(words())], odd(rng), odd(rng)],
    lambda rng: {"type": rng.choice(words()), rng.choice(words()): odd(rng)},
    lambda rng: _deep(odd(rng), rng.choice((60, 120, 3000)), rng.choice((None, "a", "items"))),
    lambda rng: extras(rng),  # noqa: PLW0108 - defined below
    lambda rng: forged(rng),  # noqa: PLW0108 - as above
    lambda rng: _hostile(rng),  # noqa: PLW0108 - as above
]


def odd(rng: random.Random) -> Any:
    """Any value, probably of the wrong type."""
    return rng.choice(_ODD)(rng)


def _hostile(rng: random.Random) -> Any:
    """A schema written to be expensive.

    Families share objects between their schemas. These are copied here, as a mutation of a shared
    object could create a cycle, and would change all later schemas.
    """
    return json.loads(json.dumps(rng.choice([*FAMILIES.values()])(rng.choice((2, 20)))))


def extras(rng: random.Random) -> dict[str, Any]:
    """Extras that no decoder makes."""
    name = rng.choice(DIALECTS)
    shapes: list[Callable[[], Any]] = [
        lambda: odd(rng),
        lambda: {rng.choice(words()): odd(rng)},
        lambda: {rng.choice(words()): odd(rng), rng.choice(words()): odd(rng)},
        lambda: [[[rng.choice(words())], odd(rng), odd(rng)]],
        lambda: [[[0, rng.choice(words())], odd(rng)]],
        lambda: [[rng.choice(words()), odd(rng), odd(rng)]],
        lambda: [[[], odd(rng), odd(rng)]],
    ]
    ending = rng.choice(("", *_ENDINGS))
    if ending == _ENDINGS[-1] and rng.random() < 0.8:
        kind = rng.choice(("values", "guesses", "names", "single", "words", "said", "tools"))
        return {f"{name}{ending}": {kind: rng.choice(shapes)()}}
    return {f"{name}{ending}": rng.choice(shapes)()}


def envelope(value: Any) -> str:
    """A forged envelope."""
    try:
        written = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        written = b"null"
    return b64encode(_MAGIC + _checksum(written) + written).decode()


def forged(rng: random.Random) -> str:
    """A sealed part with something wrong in it."""
    kind = rng.choice(("thinking", "text", "tool_call", "server_tool_call", "opaque", "image"))
    part: dict[str, Any] = {"type": kind, "extras": extras(rng)}
    part |= rng.choice([{}, {"text": "x"}, {"id": "c", "name": "f", "input": {}}, {"payload": {}}])
    if kind == "opaque":
        part |= {"dialect": rng.choice(DIALECTS), "payload": {rng.choice(words()): odd(rng)}}
    seal: dict[str, Any] = {"origin": {"dialect": rng.choice(DIALECTS)}, "part": part}
    if rng.random() < 0.3:
        seal |= {"at": [0, rng.choice((0, 5))], "length": rng.choice((0, 3))}
    return envelope(mutated(seal, rng) if rng.random() < 0.3 else seal)


# --- mutation


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: its container and key."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        holder = pending.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                pending.append(holder[key])
    return found


def _retype(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = odd(rng)


def _remove(holder: Any, key: Any, _rng: random.Random) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[rng.choice(words())] = holder[key]


def _deepen(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = _deep(holder[key], rng.choice((1, 1, 2, 110)), rng.choice((None, "a")))


def _add(holder: Any, key: Any, rng: random.Random) -> None:
    inner = holder[key] if isinstance(holder[key], dict) else holder
    if isinstance(inner, dict):
        inner[rng.choice(words())] = odd(rng)


def _rename(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(words())] = holder.pop(key)
    else:
        rng.shuffle(holder)


_CHANGES = (_retype, _retype, _retype, _remove, _repeat, _deepen, _add, _rename)


def _mutate(root: Any, rng: random.Random) -> None:
    places = places_in(root)
    if not places:
        return
    holder, key = rng.choice(places)
    if rng.random() < 0.1:  # a value from elsewhere in it
        other, at = rng.choice(places)
        holder[key] = _copied(other[at])
    else:
        rng.choice(_CHANGES)(holder, key, rng)


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except RecursionError:
        return None


def mutated(value: Any, rng: random.Random) -> Any:
    """A copy with one or a few wrong values."""
    box = [_copied(value)]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _mutate(box, rng)
    return box[0] if box else None


# --- seeds

_RICH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "default": None},
        "b": {"type": "array", "prefixItems": [{"type": "string"}, {"enum": [1, "x", None]}]},
        "c": {"oneOf": [{"const": 1}, {"type": "object", "properties": {"k": {"const": "v"}},
                                       "required": ["k"]}]},
        "d": {"allOf": [{"minLength": 2}, {"pattern": "^(a+)+$"}], "type": ["string", "null"]},
        "e": {"type": "object", "patternProperties": {"^x": {"type": "integer"}},
              "additionalProperties": {"type": "number"}, "dependentRequired": {"f": ["g"]}},
        "f": {"$ref": "#"},
        "g": {"if": {"type": "string"}, "then": {"format": "date"}, "else": {"not": {}}},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"A": {"type": "object", "properties": {"n": {"$ref": "#/$defs/A"}}}},
}  # fmt: skip


def _made() -> Iterator[Seed]:
    """Bodies with content that is rare in recordings: schemas, settings, envelopes."""
    sealed = envelope({"origin": {"dialect": "gemini"}, "part": {
        "type": "thinking", "text": "x", "signature": "c2ln",
        "extras": {"gemini": {"a": 1}, "gemini instead": [[["text"], "x", "y"]]}}})  # fmt: skip
    yield Seed("request", "anthropic", {
        "model": "m", "max_tokens": 5, "system": [{"type": "text", "text": "s"}],
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 1,
        "stop_sequences": ["x"], "metadata": {"user_id": "u"}, "service_tier": "auto",
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": _RICH}},
        "tools": [{"name": "f", "description": "d", "input_schema": _RICH, "strict": True},
                  {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control":
                                          {"type": "ephemeral", "ttl": "1h"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "x", "signature": sealed},
                {"type": "redacted_thinking", "data": sealed},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": None}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                "content": [{"type": "text", "text": "r"}], "is_error": False}]}]})  # fmt: skip
    chat_tool = {"type": "function",
                 "function": {"name": "f", "parameters": _RICH, "strict": True}}  # fmt: skip
    yield Seed("request", "openai-chat", {
        "model": "m", "max_completion_tokens": 5, "stop": ["x"], "logit_bias": {"1": 2},
        "reasoning_effort": "low", "stream_options": {"include_usage": True}, "stream": True,
        "tools": [chat_tool], "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _RICH,
                                                                    "strict": True}},
        "messages": [
            {"role": "developer", "content": "d"},
            {"role": "user", "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "f"}}]},
            {"role": "assistant", "content": None, "refusal": None, "audio": {"id": "a"},
             "reasoning_content": "r", "reasoning_details": [
                 {"type": "reasoning.encrypted", "data": sealed, "id": "i", "index": 0}],
             "tool_calls": [{"id": "c1", "type": "function",
                             "function": {"name": "f", "arguments": '{"a": null}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"}]})  # fmt: skip
    yield Seed("request", "openai-responses", {
        "model": "m", "instructions": "i", "previous_response_id": "resp_1", "store": False,
        "reasoning": {"effort": "low", "summary": "auto"}, "max_output_tokens": 5,
        "text": {"format": {"type": "json_schema", "name": "x", "schema": _RICH, "strict": True},
                 "verbosity": "low"},
        "tools": [{"type": "function", "name": "f", "parameters": _RICH, "strict": True},
                  {"type": "web_search", "filters": {"allowed_domains": ["a"]}},
                  {"type": "mcp", "server_label": "s", "server_url": "https://a.example"}],
        "tool_choice": {"type": "function", "name": "f"}, "include": ["x"],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": sealed, "summary": [
                {"type": "summary_text", "text": "s"}]},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
             "content": [{"type": "output_text", "text": "t", "annotations": [
                 {"type": "url_citation", "url": "u", "title": "t", "start_index": 0,
                  "end_index": 1}], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
             "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
            {"type": "item_reference", "id": "x"}]})  # fmt: skip
    yield Seed("request", "gemini", {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "d", "parametersJsonSchema": _RICH},
            {"name": "g", "parameters": {"type": "OBJECT", "properties": {
                "a": {"type": "STRING", "nullable": True, "enum": ["x"]}}}}]},
            {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"temperature": 1, "responseMimeType": "application/json",
                             "responseJsonSchema": _RICH, "stopSequences": ["x"],
                             "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5}},
        "safetySettings": [{"category": "c", "threshold": "t"}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png",
                                                                       "data": "AAAA"}}]},
            {"role": "model", "parts": [
                {"text": "x", "thought": True, "thoughtSignature": sealed},
                {"functionCall": {"name": "f", "args": {"a": None}, "id": "c1"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "c1",
                "response": {"result": 1}}}]}]})  # fmt: skip
    yield Seed("request", "ollama", {
        "model": "m", "format": _RICH, "think": "low", "keep_alive": "5m", "stream": False,
        "options": {"temperature": 1, "num_predict": 5, "stop": ["x"]},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": _RICH}}],
        "messages": [
            {"role": "user", "content": "hi", "images": ["AAAA"]},
            {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "content": "r", "tool_name": "f"}]})  # fmt: skip


def _errors() -> Iterator[Seed]:
    inner = {"message": "bad", "type": "invalid_request_error", "param": "messages[0]", "code": "x"}
    yield Seed("error", "openai-chat", {"error": inner, "error_type": "x"})
    yield Seed("error", "openai-responses", {"error": inner})
    yield Seed("error", "anthropic", {"type": "error", "error": inner, "request_id": "r"})
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}]
    status = {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}
    yield Seed("error", "gemini", {"error": status})
    yield Seed("error", "ollama", {"error": "model not found"})
    yield Seed("error", "openai-chat", {"detail": [{"loc": ["body", "messages", 0], "msg": "m"}]})
    yield Seed("error", "openai-chat", {"error": {"metadata": {"raw": "{}", "headers": {}}}})


def _from_fixtures() -> Iterator[Seed]:
    for dialect in DIALECTS:
        for file in sorted((_FIXTURES / dialect).glob("*.json")):
            fixture = json.loads(file.read_text(encoding="utf-8"))
            kind = fixture["canonical"]["kind"].lower()
            yield Seed(kind, dialect, fixture["wire"])
            yield Seed(f"canonical {kind}", dialect, fixture["canonical"])


_APIS = {
    "openai_chat": "openai-chat", "groq": "openai-chat", "mistral": "openai-chat",
    "other_openai_compatible": "openai-chat", "anthropic": "anthropic",
    "openai_responses": "openai-responses", "gemini": "gemini", "ollama": "ollama",
}  # fmt: skip


def _from_corpus() -> Iterator[Seed]:
    """Small recordings, one for each host and set of features."""
    seen: set[Any] = set()
    for recording in _recordings("core"):
        row = recording.row
        key = (row.provider_api, row.host, row.streaming, row.features)
        if key not in seen and row.size <= _LARGEST:
            seen.add(key)
            yield from _seeds_of(recording)


def recorded() -> Iterator[Seed]:
    """The seeds of all recordings."""
    for recording in _recordings("extended"):
        yield from _seeds_of(recording)


def _recordings(tier: Tier) -> Iterator[Recording]:
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError:
        return
    yield from (each for each in corpus.select(tier=tier) if each.row.provider_api in _APIS)


def _seeds_of(recording: Recording) -> Iterator[Seed]:
    dialect = _APIS[recording.row.provider_api]
    if isinstance(recording.request_body, dict):
        yield Seed("request", dialect, recording.request_body)
    if isinstance(recording.response_body, dict):
        yield Seed("response", dialect, recording.response_body)
    stream = recording.response_stream
    if stream is not None and "raw_b64" not in recording.content["response"]:
        yield Seed("stream", dialect, stream.decode("utf-8", "replace"))


def _canonical(request: Request) -> Any:
    return json.loads(request.to_json())


@cache
def seeds() -> list[Seed]:
    """All seeds; of every request, its canonical form too."""
    found = [*_made(), *_errors(), *_from_fixtures(), *_from_corpus()]
    for seed in [each for each in found if each.kind == "request"]:
        try:
            request = dragoman.dialect(seed.dialect).decode_request(seed.value, path=GEMINI_PATH)
        except DragomanError:
            continue
        found.append(Seed("canonical request", seed.dialect, _canonical(request)))
        messages = json.loads(Messages(*request.messages).to_json())
        found.append(Seed("canonical messages", seed.dialect, messages))
    return found


# --- operations


class ForeignError(AssertionError):
    """An exception that is not ours."""


def attempt(name: str, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result, or None if one of our errors was raised."""
    try:
        return work(*args, **options)
    except DragomanError as error:
        str(error)
        repr(error)
        return None
    except Exception as error:
        msg = f"{name}: {type(error).__name__}"
        raise ForeignError(msg) from error


@cache
def targets() -> list[tuple[str, Any]]:
    """The targets of requests: every dialect, its default target, and hosts with flags."""
    found: list[tuple[str, Any]] = []
    for name in DIALECTS:
        found += [(name, None), (name, dragoman.dialect(name).target)]
    for host, model in _HOSTS:
        target = dragoman.provider(host).target(model)
        found.append((target.dialect, target))
    return found


def send(request: Request, rng: random.Random) -> None:
    """Show a request, store it, encode it for every target, and decode an answer."""
    for value in (request, *request.tools, *request.messages):
        attempt("repr", repr, value)
    attempt("Request.to_json", request.to_json)
    for name, target in targets():
        speaker = dragoman.dialect(name)
        encoded: Encoded | None = attempt(
            f"{name}.encode_request", speaker.encode_request, request, target,
            repair=rng.random() < 0.8,
        )  # fmt: skip
        if encoded is None:
            continue
        raw = attempt("to_bytes", encoded.to_bytes)
        attempt("repr", repr, (encoded.losses, encoded.repairs))
        if raw is not None and rng.random() < 0.3:
            attempt(f"{name}.check own", speaker.check, raw)
            _restore(encoded.context, rng)


def _restore(context: Context, rng: random.Random) -> None:
    for undo in [*context.undos.values(), context.output]:
        if undo is not None:
            attempt("undo", undo, odd(rng))
            attempt("undo", undo, {"a": odd(rng), "c": {"k": odd(rng)}})


def answer(response: Response, rng: random.Random) -> None:
    """Encode a response for every front, plain and streamed."""
    attempt("repr", repr, response)
    for name in DIALECTS:
        speaker = dragoman.dialect(name)
        encoded: Encoded | None = attempt(
            f"{name}.encode_response", speaker.encode_response, response
        )
        if encoded is not None:
            raw = attempt("to_bytes", encoded.to_bytes)
            if raw is not None and rng.random() < 0.5:
                attempt(f"{name}.decode_response own", speaker.decode_response, raw)


def stream(events: list[Event]) -> None:
    """Encode events for every front."""
    for name in DIALECTS:
        encoder = dragoman.dialect(name).stream_encoder()
        for event in events:
            attempt(f"{name}.stream_encoder", encoder.feed, event)
        attempt(f"{name}.stream_encoder.close", encoder.close)


def _as_sent(body: Any, rng: random.Random) -> Any:
    """The body as a caller has it: a dict, or JSON text."""
    if not isinstance(body, dict) or rng.random() < 0.4:
        try:
            return json.dumps(body)
        except (RecursionError, ValueError):
            return body if isinstance(body, dict) else b"null"
    return body


def take_request(dialect: str, body: Any, rng: random.Random) -> None:
    """Do everything possible with the body of a request."""
    speaker, sent = dragoman.dialect(dialect), _as_sent(body, rng)
    attempt(f"{dialect}.check", speaker.check, sent, GEMINI_PATH)
    attempt("detect", dragoman.detect, sent)
    if rng.random() < 0.2:
        target = rng.choice((*DIALECTS, "groq", "mistral", "google:gemini-1.5-pro"))
        attempt("translate", dragoman.translate, sent, source=dialect, target=target)
    listed = body.get(speaker.messages_field) if isinstance(body, dict) else None
    for value in (listed, body):
        if value is not None and rng.random() < 0.3:
            attempt("Messages.from_any", Messages.from_any, value)
    if isinstance(listed, list) and listed and rng.random() < 0.3:
        attempt("Message.from_any", Message.from_any, listed[-1])
    request: Request | None = attempt(
        f"{dialect}.decode_request", speaker.decode_request, sent, path=GEMINI_PATH
    )
    if request is not None:
        send(request, rng)
        for tool in request.tools:
            if rng.random() < 0.2:
                attempt("validate", _validate, tool, rng)


def _validate(tool: Any, rng: random.Random) -> None:
    if isinstance(tool, dragoman.ToolDefinition):
        tool.problems(dragoman.ToolCall("c", tool.name, '{"a": 1, "b": [1, 2]}'))
        value = odd(rng)
        tool.check_arguments({"a": value, "b": [value]})


def take_response(dialect: str, body: Any, rng: random.Random) -> None:
    """Do everything possible with the body of a response."""
    speaker, sent = dragoman.dialect(dialect), _as_sent(body, rng)
    attempt("detect", dragoman.detect, sent)
    attempt(f"{dialect}.decode_error", speaker.decode_error, 400, body)
    response = attempt(f"{dialect}.decode_response", speaker.decode_response, sent)
    if response is not None:
        answer(response, rng)


def take_error(dialect: str, body: Any) -> None:
    """Do everything possible with the body of an error."""
    speaker = dragoman.dialect(dialect)
    for status in (None, 200, 400, 429, 500):
        headers = {"retry-after": "x"}
        error = attempt(f"{dialect}.decode_error", speaker.decode_error, status, body, headers)
        attempt("repr", repr, error)
        for name in DIALECTS:
            attempt(f"{name}.encode_error", dragoman.dialect(name).encode_error, error)
    attempt(f"{dialect}.decode_response", speaker.decode_response, body)


def take_stream(dialect: str, text: str, rng: random.Random) -> None:
    """Do everything possible with a stream."""
    decoder = dragoman.dialect(dialect).stream_decoder()
    raw = text.encode("utf-8", "surrogatepass")
    events: list[Event] = attempt(f"{dialect}.stream_decoder", decoder.feed, raw) or []
    events += attempt(f"{dialect}.stream_decoder.close", decoder.close) or []
    response = attempt(f"{dialect}.stream_decoder.response", getattr, decoder, "response")
    if response is not None:
        answer(response, rng)
    stream([_odd_event(event, rng) for event in events] if rng.random() < 0.5 else events)


def _odd_event(event: Event, rng: random.Random) -> Event:
    """The event with one value replaced, if that is valid."""
    if rng.random() < 0.8:
        return event
    plain: Any = msgspec.to_builtins(event)
    changed = _with_odd_extras(plain, rng) if rng.random() < 0.5 else mutated(plain, rng)
    try:
        made: Event = msgspec.convert(changed, _EVENT, dec_hook=frozen_hook)
    except (msgspec.ValidationError, DragomanError, ValueError, RecursionError):
        return event
    return made


def take_canonical(kind: str, document: Any, rng: random.Random) -> None:
    """Do everything possible with a stored document."""
    try:
        raw = json.dumps(document)
    except (RecursionError, ValueError):
        return
    if kind == "canonical messages":
        messages = attempt("Messages.from_json", Messages.from_json, raw)
        if messages is None:
            return
        request = attempt("Request", Request, model="m", messages=tuple(messages))
    elif kind == "canonical response":
        response = attempt("Response.from_json", Response.from_json, raw)
        if response is not None:
            answer(response, rng)
        return
    else:
        request = attempt("Request.from_json", Request.from_json, raw)
    if request is not None:
        send(request, rng)


def _mutated_stream(text: str, rng: random.Random) -> str:
    """A stream with the JSON of one event changed, or events lost, doubled or moved."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = [at for at, line in enumerate(lines) if line.lstrip().startswith(("data:", "{"))]
        if not places:
            break
        at = rng.choice(places)
        head, brace, inner = lines[at].partition("{")
        match rng.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines[at:at] = [lines[at], ""]
            case 2:
                other = rng.choice(places)
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                try:
                    value = mutated(json.loads(brace + inner), rng)
                    lines[at] = head + json.dumps(value)
                except (ValueError, RecursionError):
                    lines[at] = lines[at][: len(lines[at]) // 2]
    return "\n".join(lines)


def _with_odd_extras(document: Any, rng: random.Random) -> Any:
    """A stored document whose values have extras that no decoder makes."""
    changed = copy.deepcopy(document)
    holders = [
        holder[key]
        for holder, key in places_in([changed])
        if isinstance(holder[key], dict)
        and ("extras" in holder[key] or {"type", "role", "name", "messages"} & {*holder[key]})
    ]
    for _ in range(rng.choice((1, 2, 5))):
        if holders:
            holder = rng.choice(holders)
            kept = holder.get("extras")
            holder["extras"] = {**(kept if isinstance(kept, dict) else {}), **extras(rng)}
            if isinstance(kept, dict) and rng.random() < 0.5:
                holder["extras"] = mutated(kept, rng)
    return changed


def run(seed: Seed, rng: random.Random) -> None:
    """Mutate a seed, and do everything with it; raises `ForeignError`."""
    if seed.kind == "stream":
        take_stream(seed.dialect, _mutated_stream(seed.value, rng), rng)
    elif seed.kind == "request":
        take_request(seed.dialect, mutated(seed.value, rng), rng)
    elif seed.kind == "error":
        take_error(seed.dialect, mutated(seed.value, rng))
    elif seed.kind == "response":
        take_response(seed.dialect, mutated(seed.value, rng), rng)
    else:
        make = _with_odd_extras if rng.random() < 0.6 else mutated
        take_canonical(seed.kind, make(seed.value, rng), rng)


@cache
def _by_kind() -> dict[str, list[Seed]]:
    kinds: dict[str, list[Seed]] = {}
    for seed in seeds():
        kinds.setdefault(seed.kind, []).append(seed)
    return kinds


def one(number: int) -> None:
    """The mutation of that number: the same on every machine with the same corpus."""
    rng = random.Random(number)
    kinds = _by_kind()
    found = kinds[rng.choice(sorted(kinds))]
    first = found[: len(DIALECTS)]  # our own bodies are the first of their kind
    run(rng.choice(first if rng.random() < 0.4 else found), rng)


# --- long runs


def where(error: BaseException) -> str:
    """The type of an exception, and the function of ours that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/src/dragoman/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    place = last.filename.partition("/dragoman/")[2]
    return f"{type(error).__name__} in {place}:{last.lineno} {last.name}"


class StuckError(BaseException):
    """An input takes too long; not caught by `attempt`."""


def limit() -> None:
    """Limit memory and time (see `main`)."""

    def stop(*_: object) -> None:
        raise StuckError

    signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    """Run until the time is up; returns the number of classes found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=float, default=3, help="report what takes longer (seconds)")
    options = parser.parse_args()
    limit()
    classes: Counter[str] = Counter()
    number, end = options.seed, time.monotonic() + options.seconds
    while time.monotonic() < end:
        begun = time.process_time()
        signal.alarm(_PATIENCE)
        try:
            one(number)
        except (ForeignError, MemoryError, StuckError) as error:
            cause = error.__cause__ or error
            known = where(cause)
            if known not in classes:
                print(f"{number}: {error} {known}: {str(cause)[:100]}", flush=True)  # noqa: T201
            classes[known] += 1
        finally:
            signal.alarm(0)
        took = time.process_time() - begun
        if took > options.slow:
            print(f"{number}: slow {took:.1f}s", flush=True)  # noqa: T201
        number += 1
    print(f"{number - options.seed} mutations, {len(classes)} classes")  # noqa: T201
    for known, count in classes.most_common():
        print(f"{count:6} {known}")  # noqa: T201
    return len(classes)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
