"""The lens: one conversation as two targets would be sent it, side by side."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from dragoman.errors import ConfigError, DragomanError, InvalidRequest
from dragoman.gateway.page.alignment import Aligned, aligned, fresh
from dragoman.gateway.page.calls import PageCall, field
from dragoman.gateway.page.evidence import texts_in
from dragoman.gateway.page.pasted import Pasted, read
from dragoman.gateway.page.rule_texts import texts_of
from dragoman.model.jsontext import dumps
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.documents.naming import Named
from dragoman.wire.dialect import Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

T = TypeVar("T")
MOST_BYTES = 8 * 1024 * 1024
_MOST_MESSAGES = 20_000
_MOST_NOTES = 1000
_LONGEST_TARGET = 300
_SECONDS = 20.0
_TOO_LARGE, _BUSY = 413, 503
_MESSAGE = re.compile(r"messages\[(\d{1,9})\]")
_PIECE = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_pool = ThreadPoolExecutor(2, "dragoman-lens")
"""Encoding keeps a processor busy: two at a time, per worker."""


class Side(NamedTuple):
    """A conversation as one target is sent it."""

    target: str
    dialect: Dialect
    facts: Target | None
    encoded: Encoded
    model: str | None
    stream: bool
    aligned: Aligned
    is_response: bool = False


class Looked(NamedTuple):
    """What the lens shows."""

    source: str
    roles: list[str]
    left: Side
    right: Side


# --- views


async def lens(call: PageCall) -> Any:
    """Both sides, row by row."""
    looked = await look(call, await call.json())
    return await within(lambda: _shown(looked))


async def look(call: PageCall, asked: Mapping[str, Any]) -> Looked:
    """Encode what is asked for, in a thread: other requests go on."""
    left, right = (_target(asked, name) for name in ("left", "right"))
    text = None if "conversation" in asked else _text(asked)
    source = field(asked, "source", str, None)
    if text is None:
        from dragoman.gateway.page.stored import stored_messages

        id, branch = field(asked, "conversation", str, ""), field(asked, "branch", int, None)
        given = Pasted("canonical", await stored_messages(call, id, branch))
        return await within(lambda: looked_at(given, left, right))
    return await within(lambda: looked_at(read(text, source), left, right))


async def within(work: Callable[[], T]) -> T:
    """What some work gives, done in a thread, within limits."""
    until = monotonic() + _SECONDS
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_SECONDS):
            return await loop.run_in_executor(_pool, _guarded, work, until)
    except TimeoutError:
        pass
    msg = "this takes too long to show; try with less of it"
    raise InvalidRequest(msg, status=_BUSY)


def _guarded(work: Callable[[], T], until: float) -> T:
    """Work on what somebody pasted: whatever happens to it is no failure of the gateway."""
    if monotonic() > until:
        raise TimeoutError  # nobody waits any more
    try:
        return work()
    except ConfigError as error:  # no such dialect or provider
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
    if len(text) > MOST_BYTES:
        msg = f"the lens takes bodies of at most {MOST_BYTES:,} bytes"
        raise InvalidRequest(msg, status=_TOO_LARGE)
    return text


def _target(asked: Mapping[str, Any], side: str) -> str:
    target: str = field(asked, side, str, "")
    if not 0 < len(target) <= _LONGEST_TARGET:
        msg = f"`{side}` is a dialect, a provider, or provider:model"
        raise InvalidRequest(msg, status=400)
    return target


# --- both sides


def looked_at(given: Pasted, left: str, right: str) -> Looked:
    """What is shown of a conversation for two targets."""
    value = given.value
    if isinstance(value, Response):
        roles = [choice.message.role.value for choice in value.choices]
        sides = [_of_response(value, target) for target in (left, right)]
    else:
        request = value if isinstance(value, Request) else Request(messages=tuple(value))
        if len(request.messages) > _MOST_MESSAGES:
            msg = f"the lens shows at most {_MOST_MESSAGES:,} messages"
            raise InvalidRequest(msg, status=_TOO_LARGE)
        request = fresh(request)
        roles = [message.role.value for message in request.messages]
        sides = [_of_request(request, target) for target in (left, right)]
    return Looked(given.source, roles, sides[0], sides[1])


def _of_request(request: Request, name: str) -> Side:
    named = Named(name)
    spoken, facts = named.fitting(request.model)
    if named.model is not None:
        request = request.replace_trusted(model=named.model)
    encoded = spoken.encode_request(request, facts)
    found = aligned(request, encoded.body, spoken.messages_field, spoken.system_field)
    stream = request.stream is True
    return Side(name, spoken, facts, encoded, request.model, stream, found)


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


def _shown(looked: Looked) -> dict[str, Any]:
    return {
        "source": looked.source,
        "left": _side(looked.left),
        "right": _side(looked.right),
        "rows": _rows(looked),
    }


def _side(side: Side) -> dict[str, Any]:
    encoded, texts = side.encoded, texts_of(side.dialect.name)
    violations = [] if side.is_response else side.dialect.check(
        encoded.body, path=encoded.path, target=side.facts
    )  # fmt: skip
    return {
        "target": side.target,
        "dialect": side.dialect.name,
        "path": encoded.path,
        "headers": dict(encoded.headers),
        "body": encoded.body,
        "losses": [_note(note, side, texts) for note in encoded.losses[:_MOST_NOTES]],
        "repairs": [_note(note, side, texts) for note in encoded.repairs[:_MOST_NOTES]],
        "violations": [
            {
                "rule": each.rule, "severity": each.severity, "wire_path": each.path,
                "message": each.message, "text": texts.get(each.rule),
            }
            for each in violations[:_MOST_NOTES]
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
    """Where in the body a loss or a repair is; None where nothing of it is there."""
    found = side.aligned.wire_path(path)
    if found is not None:
        return found
    body = side.encoded.body
    if path.startswith("system"):
        field_name = side.dialect.system_field
        return field_name if field_name in body else None
    head = path.partition(".")[0]
    name, _, number = head.partition("[")
    listed = body.get(name)
    if name not in body or name == "messages":
        return None
    is_there = isinstance(listed, list) and number[:-1].isdigit() and int(number[:-1]) < len(listed)
    return head if is_there else name


def _rows(looked: Looked) -> list[dict[str, Any]]:
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
    """The messages of which something was lost or repaired."""
    notes: list[Note] = [*side.encoded.losses, *side.encoded.repairs]
    return {int(found[1]) for note in notes if (found := _MESSAGE.match(note.path)) is not None}


def _differ(looked: Looked, left: list[str], right: list[str]) -> bool:
    """Whether a message is not the same on both sides; in two dialects, by the texts in it."""
    sides = (looked.left, left), (looked.right, right)
    one, other = ([value_at(side.encoded.body, path) for path in paths] for side, paths in sides)
    if looked.left.dialect.name == looked.right.dialect.name:
        return one != other
    return sorted(texts_in(one)) != sorted(texts_in(other))


def value_at(body: Any, path: str) -> Any:
    """The value at a path into a body; None where there is none."""
    for found in _PIECE.finditer(path):
        name, number = found[1], found[2]
        try:
            body = body[name] if name is not None else body[int(number)]
        except (KeyError, IndexError, TypeError):
            return None
    return body
