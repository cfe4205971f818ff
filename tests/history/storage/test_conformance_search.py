"""Search, on every backend that supports it."""

from __future__ import annotations

from dragoman.testing.conformance.stores.search import *  # noqa: F403 - the tests
