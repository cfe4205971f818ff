"""Concurrent access on every backend: nothing is lost, duplicated or out of order."""

from __future__ import annotations

from dragoman.testing.conformance.stores.at_once import *  # noqa: F403 - the tests
