"""The behaviour of every backend for one session: each sentence of `storage/protocol.py`."""

from __future__ import annotations

from dragoman.testing.conformance.stores.sessions import *  # noqa: F403 - the tests
