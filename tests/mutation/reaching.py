"""A pytest plugin: which functions of the source each test calls, and how long it takes.

Only calls are traced, not lines: that costs little. What runs in other processes, or once for
several tests (caches, fixtures), is not seen: the answer is a hint, which tests to run first.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from time import process_time
from types import CodeType, FrameType

import pytest

_called: dict[int, CodeType] = {}
_reached: dict[str, list[int]] = {}
_seconds: dict[str, float] = {}
_numbers: dict[str, int] = {}
_SOURCE = f"{os.sep}src{os.sep}dragoman{os.sep}"


def _trace(frame: FrameType, _event: str, _argument: object) -> None:
    code = frame.f_code
    _called[id(code)] = code


def _functions() -> list[int]:
    names = {
        f"{code.co_filename.partition(_SOURCE)[2]}:{code.co_qualname}"
        for code in list(_called.values())
        if _SOURCE in code.co_filename
    }
    return sorted(_numbers.setdefault(name, len(_numbers)) for name in names)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test calls, with its fixtures."""
    _called.clear()
    start = process_time()
    threading.settrace(_trace)
    sys.settrace(_trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        _seconds[item.nodeid] = round(process_time() - start, 4)
        _reached[item.nodeid] = _functions()


def pytest_sessionfinish() -> None:
    """Write it down."""
    functions = sorted(_numbers, key=lambda name: _numbers[name])
    told = {"functions": functions, "tests": _reached, "seconds": _seconds}
    Path(os.environ["DRAGOMAN_TEST_OUTCOME"]).write_text(json.dumps(told))
