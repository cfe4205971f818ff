"""One conversation in every dialect: where each keeps what, found in the requests themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.cli.screen import harmless_line
from dragoman.cli.wrapping import Piece, say_pieces, terminal_width

if TYPE_CHECKING:
    from dragoman.model.collection import Messages
    from dragoman.model.tool_definitions import ToolDefinition

_INSTRUCTIONS = "Answer in one sentence."
_PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(16)
_MAX_TOKENS = 120
_MARKS = ("role", "type")
"""Fields that say what an object is."""
_FEW = 3
"""What fewer formats have is highlighted."""
_NAMES, _PLACES, _VALUES = 20, 64, 16  # columns
_WIDE = _NAMES + _PLACES + _VALUES


class Place(NamedTuple):
    """Where a format keeps something."""

    path: tuple[str, ...]
    marks: tuple[str, ...]
    """The roles and types of the objects on the way."""
    value: Any

    @property
    def text(self) -> str:
        """The path: keys, with brackets after lists."""
        return ".".join(self.path).replace(".[]", "[]")


class Aspect(NamedTuple):
    """What a format has to express, and how to recognise it in a request."""

    title: str
    is_it: Callable[[Any], bool]
    is_in_message: bool = True
    number: int = 0
    """Which of the places where it is found is meant."""


def compare(messages: Messages, tool: ToolDefinition) -> None:
    """Print where each dialect keeps the question, the call, its result, and what goes with them.

    `messages` begins with a question, a call of the tool and its result.
    """
    bodies = _bodies(messages, tool)
    for aspect in _aspects(messages):
        places = {name: _place(aspect, *body) for name, body in bodies.items()}
        _show(aspect.title, {name: place for name, place in places.items() if place is not None})


def _aspects(messages: Messages) -> tuple[Aspect, ...]:
    from base64 import b64encode

    call, result = messages[1].tool_calls[0], messages[2].tool_results[0]
    picture = b64encode(_PICTURE).decode()

    def holds(text: str) -> Callable[[Any], bool]:
        return lambda value: isinstance(value, str) and text in value

    def is_arguments(value: Any) -> bool:
        is_text = isinstance(value, str) and value.startswith("{")
        return value == call.arguments or (is_text and value == call.raw_arguments)

    def is_schema(value: Any) -> bool:
        return isinstance(value, dict) and "properties" in value

    return (
        Aspect("the messages", lambda value: isinstance(value, list), is_in_message=False),
        Aspect("the instructions", holds(_INSTRUCTIONS), is_in_message=False),
        Aspect("what the user says", holds(messages[0].text)),
        Aspect("a picture", holds(picture)),
        Aspect("the parameters of a tool", is_schema, is_in_message=False),
        Aspect("the arguments of a tool call", is_arguments),
        Aspect("the result of the tool", holds(result.text)),
        Aspect("the call that it belongs to", lambda value: value == call.id, number=1),
        Aspect(f"at most {_MAX_TOKENS} tokens", lambda value: value == _MAX_TOKENS,
               is_in_message=False),
    )  # fmt: skip


# --- finding


def _bodies(messages: Messages, tool: ToolDefinition) -> dict[str, tuple[Any, str]]:
    """The request of each dialect, and the field with its messages."""
    from dragoman.model.media import Image
    from dragoman.model.messages import Message
    from dragoman.model.parts import Text
    from dragoman.model.requests import Request, Sampling
    from dragoman.wire.dialect import dialect, dialects

    request = Request(
        system=(Text(_INSTRUCTIONS),),
        messages=(*messages[:3], Message.user(Image.from_bytes(_PICTURE))),
        tools=(tool,),
        sampling=Sampling(max_tokens=_MAX_TOKENS),
    )
    found: dict[str, tuple[Any, str]] = {}
    for name in dialects():
        spoken = dialect(name)
        found[name] = spoken.encode_request(request).body, spoken.messages_field
    return found


def _place(aspect: Aspect, body: Any, field: str) -> Place | None:
    """Where a request has something; the path starts in its message, if it is in one."""
    found = [place for place in _places(body) if aspect.is_it(place.value)]
    if aspect.is_in_message:
        inside = [place for place in found if place.path[:2] == (field, "[]")]
        found = [place._replace(path=place.path[2:]) for place in inside]
    elif aspect.number == 0 and found and isinstance(found[0].value, list):
        found = [place for place in found if place.path == (field,)]
    return found[aspect.number] if len(found) > aspect.number else None


def _places(value: Any, path: tuple[str, ...] = (), marks: tuple[str, ...] = ()) -> Iterator[Place]:
    """Everything in a request."""
    yield Place(path, marks, value)
    if isinstance(value, dict):
        known = [mark.partition(":")[0] for mark in marks]  # the outer ones say more
        own = [
            f"{name}: {value[name]}"
            for name in _MARKS
            if name not in known and isinstance(value.get(name), str)
        ]
        for name, each in value.items():
            yield from _places(each, (*path, name), (*marks, *own))
    elif isinstance(value, list):
        for each in value:
            yield from _places(each, (*path, "[]"), marks)


# --- showing


def _show(title: str, places: dict[str, Place]) -> None:
    counts = Counter(part for each in places.values() for part in {*each.path, *each.marks})
    say_pieces([Piece(title, "aspect")])
    width = terminal_width()
    for name, place in places.items():
        row = [Piece(f"  {name:<{_NAMES - 2}}", "dim"), *_path_pieces(place, counts)]
        for mark in place.marks:
            row.append(Piece("  "))
            row.append(Piece(harmless_line(mark), "dim" if counts[mark] >= _FEW else "differs"))
        used = sum(len(piece.text) for piece in row)
        if width is None or width >= _WIDE:
            row.append(Piece(" " * max(_NAMES + _PLACES - used, 2)))
            used = max(_NAMES + _PLACES, used + 2)
            row.append(Piece(_value(place.value, None if width is None else width - used), "dim"))
        say_pieces(row, indent=_NAMES)


def _path_pieces(place: Place, counts: Counter[str]) -> Iterator[Piece]:
    """The path, with the keys highlighted that few formats have."""
    for number, key in enumerate(place.path):
        if key == "[]":
            yield Piece("[]")
            continue
        yield Piece("." if number else "")
        yield Piece(harmless_line(key), "" if counts[key] >= _FEW else "differs")


def _value(value: Any, room: int | None) -> str:
    """The value as it is sent, if it is short or cut to be."""
    from dragoman.cli.chat.calls import shortened
    from dragoman.model.jsontext import dumps

    if isinstance(value, list):
        return "[…]"
    return shortened(harmless_line(dumps(value).decode()), min(room or 40, 40))
