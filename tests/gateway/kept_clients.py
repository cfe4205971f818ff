"""Clients of SDKs that are made once for all tests, and closed when the process ends.

Making one takes as long as several requests, and each keeps its connections open.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, ExitStack
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Client = TypeVar("_Client", bound=AbstractContextManager[object])
_open = ExitStack()
atexit.register(_open.close)


def kept(make: Callable[_Given, _Client]) -> Callable[_Given, _Client]:
    """The client that a function makes, the same for the same arguments."""
    clients: dict[Hashable, _Client] = {}

    def made(*args: _Given.args, **kwargs: _Given.kwargs) -> _Client:
        key = args, tuple(sorted(kwargs.items()))
        if key not in clients:
            clients[key] = make(*args, **kwargs)
            _open.push(clients[key])
        return clients[key]

    return made
