"""Puts a mutant into a process that has loaded the source: its functions get other code.

What is decided while a module is loaded (defaults, decorators, class bodies, constants) can't be
changed in this way: such a mutant needs a process that loads it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any


def functions_of(folder: str) -> list[FunctionType]:
    """All functions that were loaded from a folder."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(folder)
    ]


def patch(functions: Iterable[FunctionType], file: str, before: str, after: str) -> bool:
    """Give the functions of a file the code of a mutant; whether one of them has it."""
    replaced = {
        _key(old): new for old, new in _pairs(_compiled(before, file), _compiled(after, file))
    }
    count = 0
    for function in functions:
        code = function.__code__
        if code.co_filename == file and (new := replaced.get(_key(code))) is not None:
            if len(new.co_freevars) != len(code.co_freevars):
                return False  # a closure of another shape
            function.__code__ = new
            count += 1
    return count > 0


def _compiled(source: str, file: str) -> CodeType:
    code: CodeType = compile(source, file, "exec", dont_inherit=True)
    return code


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions that differ, and those around them."""
    for before, after in zip(_inner(old), _inner(new), strict=False):
        if before.co_name == after.co_name and before != after:
            yield before, after
            yield from _pairs(before, after)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _key(code: CodeType) -> tuple[Any, ...]:
    """What tells one function of a file from another; code that has run is no longer equal."""
    return (
        code.co_qualname, code.co_firstlineno, code.co_names, code.co_varnames, code.co_freevars,
    )  # fmt: skip
