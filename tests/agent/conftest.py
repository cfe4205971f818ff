"""Async tests run on a loop of their own; nothing of the environment gets into them."""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests; they need no plugin then."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no proxies, no authorities: a test sets what it is about."""
    for name in [*os.environ]:
        is_proxy = name.lower() in _PROXIES
        if is_proxy or name in _AUTHORITIES or name.endswith(("_API_KEY", "_ACCESS_TOKEN")):
            monkeypatch.delenv(name)
