"""What every history store must do: each sentence of `dragoman.history.storage.protocol`.

The tests use two fixtures: `backend`, a `Backend` with nothing in it, and `new_backend`, one whose
location no store has opened before; they may be the same.
"""

from __future__ import annotations

from dragoman.testing.conformance.stores import at_once, branches, hostile, many, search, sessions
from dragoman.testing.conformance.stores.at_once import *  # noqa: F403 - all tests
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.branches import *  # noqa: F403 - all tests
from dragoman.testing.conformance.stores.hostile import *  # noqa: F403 - all tests
from dragoman.testing.conformance.stores.many import *  # noqa: F403 - all tests
from dragoman.testing.conformance.stores.search import *  # noqa: F403 - all tests
from dragoman.testing.conformance.stores.sessions import *  # noqa: F403 - all tests

_PARTS = (sessions, at_once, branches, many, search, hostile)

__all__ = [name for part in _PARTS for name in part.__all__]
__all__ += ["Backend"]
