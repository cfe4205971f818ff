"""Prints the kinds of nodes in every regular expression that our code compiles, as JSON.

Run in a process of its own, `python -m tests.compiled_patterns`: a pattern is compiled once.
Imports all modules, and does what compiles patterns for what comes: decodes streams of every
dialect, and looks for a model's name.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from typing import Any

PARSER: Any = vars(re)["_parser"]
_COMPILER: Any = vars(re)["_compiler"]
_FRAMES = 450  # more than a pattern for batches needs


def kinds_in(node: Any) -> Iterator[str]:
    """The kinds of the nodes in a parsed pattern, among other words."""
    if isinstance(node, (list, tuple, PARSER.SubPattern)):
        for each in node:
            yield from kinds_in(each)
    else:
        yield str(node)


def _note_patterns() -> dict[str, list[str]]:
    """The kinds in each pattern that our code compiles from now on."""
    found: dict[str, list[str]] = {}
    compiled = _COMPILER.compile

    def noting(pattern: Any, flags: int = 0) -> Any:
        if isinstance(pattern, (str, bytes)) and _is_ours():
            found[repr(pattern)] = sorted(set(kinds_in(PARSER.parse(pattern, flags))))
        return compiled(pattern, flags)

    _COMPILER.compile = noting
    return found


def _is_ours() -> bool:
    """Whether our code asked `re` for it, not a library that we import."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals["__name__"] == "re":
        frame = frame.f_back
    return str(frame.f_globals["__name__"]).startswith("dragoman")


def _import_all() -> None:
    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError, dragoman.DragomanError):  # without its extra
                importlib.import_module(module.name)


def _use() -> None:
    import dragoman
    from dragoman.providers.facts.names import is_like
    from tests.wire.lane.frames import BEGINNINGS, FORMS, PLAIN, Style

    is_like("a*b*c", "abc")
    for dialect, names in PLAIN.items():
        for name in names:
            bodies = [FORMS[dialect][name](f'"{n}"') for n in range(_FRAMES)]
            frames = map(Style(dialect).frame, [*BEGINNINGS[dialect], *bodies])
            dragoman.dialect(dialect).stream_decoder().feed(b"".join(frames))


if __name__ == "__main__":
    noted = _note_patterns()
    _import_all()
    imported = len(noted)
    _use()
    json.dump({"patterns": noted, "later": len(noted) - imported}, sys.stdout)
