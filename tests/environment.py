"""The environment of every test: the same on every machine.

No setting of a developer (keys, proxies, `NO_COLOR`, a time zone, `PIP_*`) and no installed package
affects a test. A test about one of these sets it.
"""

from __future__ import annotations

import os
import ssl
import sys
import time
from itertools import count
from pathlib import Path

import pytest

OUTSIDE = dict(os.environ)
"""The environment as it was, for what has to reach the package index."""

OPTIONAL = ("xllamacpp",)
"""Packages that may be installed (`make run` does), and count as absent unless a test asks."""

PATIENCE = 60.0
"""Seconds to wait for what must happen: a busy machine takes its time, a test that hangs ends."""

_TESTS = Path(__file__).resolve().parent
_FAKE_LLAMA = _TESTS / "transport" / "fake_llama"

_KEPT = frozenset(
    (
        # needed to start a program
        *("PATH", "PATHEXT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "COMSPEC"),
        *("TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "PYTHONPATH"),
        # those that CONTRIBUTING.md documents for running the tests
        *("DRAGOMAN_CORPUS", "DRAGOMAN_DIST", "DRAGOMAN_LOCAL"),
        *("DRAGOMAN_PROFILE", "DRAGOMAN_TIER"),
    )
)
_KEPT_PREFIXES = ("DRAGOMAN_TEST_", "PYTEST_", "COVERAGE_", "COV_")

_numbers = count()


def settle() -> None:
    """Turn the environment of this process into that of the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    # `tests/startup` comes first: it hides packages from every Python that a test starts.
    paths = [str(_TESTS / "startup"), str(_TESTS.parent), kept.get("PYTHONPATH", "")]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    kept["DRAGOMAN_TEST_ABSENT"] = " ".join(OPTIONAL)
    kept["PYTHONUTF8"] = "1"
    kept["TZ"] = "UTC"
    os.environ.clear()
    os.environ.update(kept)
    if sys.platform != "win32":  # which has no such call
        time.tzset()
    # The machine's certificate authorities are trusted by no test, and take 50 ms in each context.
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]  # noqa: ARG005


def isolate(monkeypatch: pytest.MonkeyPatch, homes: Path) -> None:
    """Give one test an empty home, and hide optional packages."""
    monkeypatch.setenv("HOME", str(homes / str(next(_numbers))))  # created by whoever writes there
    for name in OPTIONAL:
        monkeypatch.setitem(sys.modules, name, None)  # can't be imported, and has no spec


def offer_fake_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a stand-in for xllamacpp, here and in every Python that the test starts."""
    _offer(monkeypatch)
    monkeypatch.setattr(sys, "path", [str(_FAKE_LLAMA), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(_FAKE_LLAMA), prepend=os.pathsep)


def offer_real_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the installed xllamacpp, and the models in the user's cache."""
    _offer(monkeypatch)
    for name in ("HOME", "XDG_CACHE_HOME"):
        if name in OUTSIDE:
            monkeypatch.setenv(name, OUTSIDE[name])


def _offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "xllamacpp")
    monkeypatch.setenv("DRAGOMAN_TEST_ABSENT", "")
