"""The Lens API: encodes one conversation for two targets and compares them side by side."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from dragoman.errors import ConfigError, Corrupt, DragomanError, InvalidInputError, InvalidRequest
from dragoman.gateway.page.alignment import Aligned, aligned, fresh, texts_in
from dragoman.gateway.page.calls import PageCall, field
from dragoman.history.branches import read_tail, stretches
from dragoman.history.records import message_of
from dragoman.interop.peers import langchain, pydantic_ai
from dragoman.model.collection import Messages
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.documents.naming import Named
from dragoman.providers.documents.reading import AUTO, Reader
from dragoman.wire.dialect import Dialect, dialect, dialects, is_own_dialect
from dragoman.wire.documents import Conversation
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule

# --- the rules of each dialect, as `check` applies them


async def rules(call: PageCall) -> Any:
    """Returns the rules of a target."""
    try:
        spoken, _ = Named(call.query.get("target", "")).fitting(None)
    except ConfigError as error:
        raise InvalidRequest(str(error), status=400) from None
    return {"rules": [_rule_view(rule) for rule in rules_of(spoken.name)]}


def _rule_view(rule: Rule[Any]) -> dict[str, Any]:
    return {
        "id": rule.number,
        "text": text_of(rule),
        "evidence": rule.evidence,
        "severity": rule.severity,
        "refused_by": list(rule.refused_by),
    }


@lru_cache(maxsize=32)
def rules_of(dialect: str) -> tuple[Rule[Any], ...]:
    """Returns the rules of a dialect; empty for dialects of other packages."""
    if not is_own_dialect(dialect):
        return ()
    folder = dialect.replace("-", "_")
    return tuple(import_module(f"dragoman.wire.{folder}.rules").RULES)


def text_of(rule: Rule[Any]) -> str:
    """Returns the description of a rule."""
    return " ".join((rule.find.__doc__ or "").split())


@lru_cache(maxsize=32)
def texts_of(dialect: str) -> dict[str, str]:
    """Maps each rule number to the descriptions of all its checks."""
    found: dict[str, list[str]] = {}
    for rule in rules_of(dialect):
        found.setdefault(rule.number, []).append(text_of(rule))
    return {number: " ".join(texts) for number, texts in found.items()}


# --- pasted text: bodies and streams of any dialect, other libraries' messages

_STREAMS = (b"data:", b"event:", b": ", b":\n")
_LANGCHAIN = frozenset({
    "human", "ai", "system", "tool", "function", "developer", "chat", "AIMessageChunk",
})  # fmt: skip
_NO_STREAM = "this looks like a stream, but no dialect can read it; choose its dialect"


class Pasted(NamedTuple):
    """The pasted conversation, and the dialect that it was written in."""

    source: str
    value: Conversation


def read(text: bytes, source: str | None) -> Pasted:
    """Parses a text in the given dialect, or detects its dialect."""
    given = text.lstrip()
    if given.startswith(_STREAMS):
        return _stream(given, source)
    if source in (None, AUTO):
        peer = _of_peer(loads(given))
        if peer is not None:
            return peer
    found = Reader(source or AUTO).read(given)
    return Pasted(found.dialect, found.value)


def _of_peer(wire: Any) -> Pasted | None:
    """Reads messages dumped by LangChain or pydantic-ai; None for anything else."""
    items = wire if isinstance(wire, list) else ()
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    if all(item.get("kind") in {"request", "response"} and "parts" in item for item in items):
        return Pasted("pydantic-ai", Messages.wrapping(pydantic_ai.decode_messages(items)))
    if all(_is_langchain(item) for item in items):
        return Pasted("langchain", Messages.wrapping(langchain.decode_messages(items)))
    return None


def _is_langchain(item: Mapping[str, Any]) -> bool:
    kind, data = item.get("type"), item.get("data")
    inner = data if isinstance(data, Mapping) else item
    return isinstance(kind, str) and kind in _LANGCHAIN and "content" in inner


def _stream(text: bytes, source: str | None) -> Pasted:
    names = [source] if source not in (None, AUTO) and source is not None else dialects()
    for name in names:
        response = _streamed(name, text)
        if response is not None:
            return Pasted(name, response)
    raise InvalidInputError(_NO_STREAM)


def _streamed(name: str, text: bytes) -> Response | None:
    """Decodes a stream in one dialect; None if the response has no content."""
    decoder = dialect(name).stream_decoder()
    try:
        decoder.feed(text if text.endswith(b"\n\n") else text + b"\n\n")
        decoder.close()
    except DragomanError:
        pass
    response = decoder.response
    return response if any(choice.message.parts for choice in response.choices) else None


# --- stored conversations


class Stored(NamedTuple):
    """The latest messages of a branch."""

    messages: Messages
    is_cut: bool
    """Whether there are earlier ones."""
    damaged: int
    """How many can't be read, and are left out."""


async def stored_messages(call: PageCall, id: str, branch: int | None, most: int) -> Stored:
    """Returns the latest messages of a branch."""
    listing, storage = await call.page.listing(), await call.page.storage()
    session = await listing.session(id)
    path = stretches(session, session.active if branch is None else branch)
    found: list[Message] = []
    rows = await read_tail(storage, session.identity, path, most + 1)
    latest = rows[-most:]
    for row in latest:
        try:
            found.append(message_of(row.body))
        except Corrupt:
            continue
    damaged = len(latest) - len(found)
    return Stored(Messages.wrapping(found), len(rows) > most, damaged)


# --- the API

T = TypeVar("T")
MAX_BYTES = 8 * 1024 * 1024
MAX_MESSAGES = 20_000
_MAX_NOTES = 1000
_MAX_TARGET = 300
_TIMEOUT = 20.0
_TOO_LARGE, _BUSY = 413, 503
_MESSAGE = re.compile(r"messages\[(\d{1,9})\]")
_PIECE = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SAMPLING = "sampling."
_ANY_MODEL = "any"
_SETTING_GROUPS = ("generationConfig", "options")
_SETTING_NAMES = {
    "max_tokens": ("max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"),
    "stop": ("stop_sequences", "stopSequences"),
    "choices": ("n", "candidateCount"),
}
"""Names of settings in bodies, other than their own in snake or camel case."""
_pool = ThreadPoolExecutor(2, "dragoman-lens")
"""Encoding is CPU-bound: at most two at a time per worker."""


class Side(NamedTuple):
    """A conversation encoded for one target."""

    target: str
    dialect: Dialect
    facts: Target | None
    encoded: Encoded
    model: str | None
    stream: bool
    aligned: Aligned
    is_response: bool = False
    is_conversation: bool = False
    """Whether it is a conversation without a request: nobody chose a model for it yet."""


class Comparison(NamedTuple):
    """A conversation encoded for two targets."""

    source: str
    roles: list[str]
    left: Side
    right: Side
    is_cut: bool = False
    """Whether a stored conversation has earlier messages, which are not compared."""
    damaged: int = 0
    """How many of its messages can't be read, and are not compared."""


# --- views


async def lens(call: PageCall) -> Any:
    """Returns both sides, row by row."""
    looked = await compare(call, await call.json())
    return await within(lambda: _shown(looked))


async def compare(call: PageCall, asked: Mapping[str, Any]) -> Comparison:
    """Encodes the requested conversation or body in a thread, so as not to block the loop."""
    left, right = (_target(asked, name) for name in ("left", "right"))
    text = None if "conversation" in asked else _text(asked)
    source = field(asked, "source", str, None)
    if text is None:
        id, branch = field(asked, "conversation", str, ""), field(asked, "branch", int, None)
        stored = await stored_messages(call, id, branch, MAX_MESSAGES)
        given = Pasted("canonical", stored.messages)
        looked = await within(lambda: compared(given, left, right))
        return looked._replace(is_cut=stored.is_cut, damaged=stored.damaged)
    return await within(lambda: compared(read(text, source), left, right))


async def within(work: Callable[[], T]) -> T:
    """Runs a function in a thread, with a timeout."""
    until = monotonic() + _TIMEOUT
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await loop.run_in_executor(_pool, _guarded, work, until)
    except TimeoutError:
        pass
    msg = "the comparison took too long; try a shorter conversation"
    raise InvalidRequest(msg, status=_BUSY)


def _guarded(work: Callable[[], T], until: float) -> T:
    """Runs a function on pasted input and turns its failures into client errors."""
    if monotonic() > until:
        raise TimeoutError  # the request has timed out already
    try:
        return work()
    except ConfigError as error:  # unknown dialect or provider
        raise InvalidRequest(str(error), status=400) from None
    except DragomanError:
        raise
    except (RecursionError, MemoryError, ValueError, TypeError, KeyError, AttributeError):
        pass
    msg = "this can't be read as a conversation"
    raise InvalidRequest(msg, status=400)


def _text(asked: Mapping[str, Any]) -> bytes:
    body = asked.get("body")
    if body is None:
        msg = "the lens needs a `conversation` or a `body`"
        raise InvalidRequest(msg, status=400)
    text = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else dumps(body)
    if len(text) > MAX_BYTES:
        msg = f"the lens accepts bodies of up to {MAX_BYTES:,} bytes"
        raise InvalidRequest(msg, status=_TOO_LARGE)
    return text


def _target(asked: Mapping[str, Any], side: str) -> str:
    target: str = field(asked, side, str, "")
    if not 0 < len(target) <= _MAX_TARGET:
        msg = f"`{side}` must be a dialect, a provider, or provider:model"
        raise InvalidRequest(msg, status=400)
    return target


# --- both sides


def compared(given: Pasted, left: str, right: str) -> Comparison:
    """Encodes a conversation for two targets."""
    value = given.value
    if isinstance(value, Response):
        roles = [choice.message.role.value for choice in value.choices]
        sides = [_of_response(value, target) for target in (left, right)]
    else:
        request = value if isinstance(value, Request) else Request(messages=tuple(value))
        if len(request.messages) > MAX_MESSAGES:
            msg = f"the lens accepts up to {MAX_MESSAGES:,} messages"
            raise InvalidRequest(msg, status=_TOO_LARGE)
        request = fresh(request)
        roles = [message.role.value for message in request.messages]
        is_request = isinstance(value, Request)
        sides = [_of_request(request, target, is_request) for target in (left, right)]
    return Comparison(given.source, roles, sides[0], sides[1])


def _of_request(request: Request, name: str, is_request: bool) -> Side:  # noqa: FBT001 - of the value
    named = Named(name)
    spoken, facts = named.fitting(request.model)
    if not is_request:  # it goes on with the user's next message, not with more of its last answer
        facts = (facts or spoken.target).with_flags({"turns.prefill": "free"})
    if named.model is not None:
        request = request.replace_trusted(model=named.model)
    encoded = spoken.encode_request(request, facts)
    found = aligned(request, encoded.body, spoken.messages_field, spoken.system_field)
    stream = request.stream is True
    return Side(name, spoken, facts, encoded, request.model, stream, found,
                is_conversation=not is_request)  # fmt: skip


def _of_response(response: Response, name: str) -> Side:
    spoken, facts = Named(name).fitting(None)
    encoded = spoken.encode_response(response)
    body, count = encoded.body, len(response.choices)
    rows: list[list[str]] = [[] for _ in range(count)]
    for key in ("choices", "candidates"):
        for index in range(min(count, len(body.get(key) or ()))):
            rows[index].append(f"{key}[{index}]")
    if count and not any(rows):
        rows[0] = [key for key in ("output", "content", "message") if key in body]
    return Side(name, spoken, facts, encoded, None, stream=False, aligned=Aligned(rows, {}),
                is_response=True)  # fmt: skip


def _shown(looked: Comparison) -> dict[str, Any]:
    return {
        "source": looked.source,
        "left": _side(looked.left),
        "right": _side(looked.right),
        "rows": _rows(looked),
        "is_cut": looked.is_cut,
        "damaged": looked.damaged,
    }


def _side(side: Side) -> dict[str, Any]:
    encoded, texts = side.encoded, texts_of(side.dialect.name)
    checked = {"model": _ANY_MODEL, **encoded.body} if side.is_conversation else encoded.body
    violations = [] if side.is_response else side.dialect.check(
        checked, path=encoded.path, target=side.facts
    )  # fmt: skip
    return {
        "target": side.target,
        "dialect": side.dialect.name,
        "path": encoded.path,
        "headers": dict(encoded.headers),
        "body": encoded.body,
        "losses": [_note(note, side, texts) for note in encoded.losses[:_MAX_NOTES]],
        "repairs": [_note(note, side, texts) for note in encoded.repairs[:_MAX_NOTES]],
        "violations": [
            {
                "rule": each.rule, "severity": each.severity, "wire_path": each.path,
                "message": each.message, "text": texts.get(each.rule),
            }
            for each in violations[:_MAX_NOTES]
        ],
    }  # fmt: skip


def _note(note: Note, side: Side, texts: Mapping[str, str]) -> dict[str, Any]:
    made = {"path": note.path, "wire_path": wire_path(note.path, side), "reason": note.reason}
    if isinstance(note, Repair):
        made |= {"rule": note.rule, "action": note.action}
        if note.rule in texts:
            made["text"] = texts[note.rule]
    return made


def wire_path(path: str, side: Side) -> str | None:
    """Returns the path in the body of a loss or repair; None if the body has nothing of it."""
    found = side.aligned.wire_path(path)
    if found is not None:
        return found
    body = side.encoded.body
    if path.startswith("system"):
        field_name = side.dialect.system_field
        return field_name if field_name in body else None
    if path.startswith(_SAMPLING):
        return _setting_path(path.removeprefix(_SAMPLING), body)
    head = path.partition(".")[0]
    name, _, number = head.partition("[")
    listed = body.get(name)
    if name not in body or name == "messages":
        return None
    is_there = isinstance(listed, list) and number[:-1].isdigit() and int(number[:-1]) < len(listed)
    return head if is_there else name


def _setting_path(name: str, body: Mapping[str, Any]) -> str | None:
    """Returns the path of a sampling setting: a field of the body, or of its group of settings."""
    first, *others = name.split("_")
    names = {name, "".join((first, *map(str.title, others))), *_SETTING_NAMES.get(name, ())}
    for group in ("", *_SETTING_GROUPS):
        fields = body.get(group) if group else body
        if isinstance(fields, Mapping):
            found = next((each for each in fields if each in names), None)
            if found is not None:
                return f"{group}.{found}" if group else found
    return None


def _rows(looked: Comparison) -> list[dict[str, Any]]:
    left, right = looked.left, looked.right
    noted = _noted(left) | _noted(right)
    found: list[dict[str, Any]] = []
    for index, role in enumerate(looked.roles):
        paths = left.aligned.rows[index], right.aligned.rows[index]
        differs = index in noted or _differ(looked, *paths)
        found.append({"message": index, "role": role, "left": paths[0], "right": paths[1],
                      "differs": differs})  # fmt: skip
    return found


def _noted(side: Side) -> set[int]:
    """Returns the indexes of messages with losses or repairs."""
    notes: list[Note] = [*side.encoded.losses, *side.encoded.repairs]
    return {int(found[1]) for note in notes if (found := _MESSAGE.match(note.path)) is not None}


def _differ(looked: Comparison, left: list[str], right: list[str]) -> bool:
    """Whether a message differs between the sides; across dialects, only texts are compared."""
    sides = (looked.left, left), (looked.right, right)
    one, other = ([value_at(side.encoded.body, path) for path in paths] for side, paths in sides)
    if looked.left.dialect.name == looked.right.dialect.name:
        return one != other
    return sorted(texts_in(one)) != sorted(texts_in(other))


def value_at(body: Any, path: str) -> Any:
    """Returns the value at a path in a body; None if there is none."""
    for found in _PIECE.finditer(path):
        name, number = found[1], found[2]
        try:
            body = body[name] if name is not None else body[int(number)]
        except (KeyError, IndexError, TypeError):
            return None
    return body
