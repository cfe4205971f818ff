"""Operations across sessions, on every backend: listing, totals, erasure."""

from __future__ import annotations

from dragoman.testing.conformance.stores.many import *  # noqa: F403 - the tests
