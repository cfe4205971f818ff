"""Calls whose arguments come in pieces, as Vertex AI streams them if asked to (W87).

The first chunk names the function, the next ones hold `partialArgs`: a path into the arguments
and a value, a long text in several pieces. The last one does not say `willContinue`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from dragoman.errors import WireError
from dragoman.model.jsontext import dumps
from dragoman.wire.gemini.trace import NAME, is_array, is_object

Container = dict[str, Any] | list[Any]
_PIECEWISE = frozenset({"partialArgs", "partial_args", "willContinue", "will_continue"})
_PIECES = _PIECEWISE | {"args"}
_VALUES = ("numberValue", "boolValue", "nullValue",
           "number_value", "bool_value", "null_value")  # fmt: skip
_STEP = re.compile(
    r"""\.([^.\[\]]+) | \[(\d{1,6})\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE,
)
_NOWHERE = ""
"""The name of a value that came without its path, where it does not go on from another."""
_ESCAPED = re.compile(r"\\(.)")


def call_in(wire: Any) -> dict[str, Any] | None:
    """The function call of a part, if it is one."""
    if not is_object(wire):
        return None
    call = wire.get("functionCall", wire.get("function_call"))
    return call if is_object(call) else None


def is_piece(call: dict[str, Any]) -> bool:
    """Whether more of the call comes, or some of its arguments."""
    if _PIECEWISE.isdisjoint(call):  # nearly all are whole
        return False
    return _continues(call) or is_array(call.get("partialArgs", call.get("partial_args")))


def head_of(wire: dict[str, Any]) -> dict[str, Any]:
    """The part of a call's first chunk, without what is said of its arguments."""
    call = call_in(wire) or {}
    head = {key: value for key, value in call.items() if key not in _PIECES}
    rest = {
        key: value for key, value in wire.items() if key not in {"functionCall", "function_call"}
    }
    return {**rest, "functionCall": head}


class GrowingCall:
    """The arguments of a call between its first chunk and its last."""

    __slots__ = ("_args", "_path", "_place", "_texts", "index", "is_whole")

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_whole = False
        self._args: dict[str, Any] = {}
        self._path: str | None = None  # of a text that is not yet whole
        self._place: tuple[Container, Any] = (self._args, "")
        self._texts: list[str] = []

    def grow(self, call: dict[str, Any]) -> None:
        """Add what a chunk says of the arguments."""
        args = call.get("args")
        if is_object(args):
            self._args.update(args)
        pieces = call.get("partialArgs", call.get("partial_args"))
        for piece in pieces if is_array(pieces) else ():
            self._add(piece)
        self.is_whole = not _continues(call)

    def rest(self) -> str:
        """The arguments as JSON, after the opening brace; not closed where they broke off."""
        self._settle()
        written = dumps(self._args).decode()[1:]
        return written if self.is_whole else written[:-1]

    def _add(self, piece: Any) -> None:
        if not is_object(piece):
            raise _malformed()
        path = piece.get("jsonPath", piece.get("json_path"))
        if type(path) is not str:
            path = self._path or _NOWHERE
        if path != self._path:
            self._settle()
            self._place = self._reach(path)
        text = piece.get("stringValue", piece.get("string_value"))
        if type(text) is str:
            self._path = path
            self._texts.append(text)
            if not _continues(piece):
                self._settle()
            return
        key = next((key for key in _VALUES if key in piece), None)
        if key is not None:
            container, step = self._place
            container[step] = None if key.startswith("null") else piece[key]

    def _settle(self) -> None:
        """Put a text in its place, once it is whole."""
        if self._path is not None:
            container, step = self._place
            container[step] = "".join(self._texts)
            self._path, self._texts = None, []

    def _reach(self, path: str) -> tuple[Container, Any]:
        """The object or list that a path ends in, made on the way, and the last step."""
        if path == _NOWHERE:
            return self._args, path
        steps = _steps(path)
        container: Container = self._args
        for step, following in pairwise(steps):
            inner = _held(container, step)
            if inner is None:
                inner = [] if type(following) is int else {}
                container[step] = inner  # type: ignore[index]  # `_held` has checked the step
            if not isinstance(inner, (dict, list)):
                raise _malformed()
            container = inner
        _held(container, steps[-1])
        return container, steps[-1]


def _held(container: Container, step: str | int) -> Any:
    """What is there already; a list has room for one more."""
    if isinstance(container, list) and type(step) is int and step <= len(container):
        if step == len(container):
            container.append(None)
        return container[step]
    if isinstance(container, dict) and type(step) is str:
        return container.get(step)
    raise _malformed()


def _steps(path: str) -> list[str | int]:
    """The names and numbers in a path: `$.a.b[0]['c d']`."""
    steps: list[str | int] = []
    position = 1
    while position < len(path) and (found := _STEP.match(path, position)):
        name, number, single, double = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            quoted = single if single is not None else double
            steps.append(name if name is not None else _ESCAPED.sub(r"\1", quoted))
        position = found.end()
    if not path.startswith("$") or position < len(path) or not steps:
        raise _malformed()
    return steps


def _continues(wire: dict[str, Any]) -> bool:
    return wire.get("willContinue", wire.get("will_continue")) is True


def _malformed() -> WireError:
    msg = "a piece of a call's arguments has no place in them"
    return WireError(msg, dialect=NAME, path="$.candidates.content.parts.functionCall.partialArgs")
