"""Branches, windows, copies and damaged records, on every backend."""

from __future__ import annotations

from dragoman.testing.conformance.stores.branches import *  # noqa: F403 - the tests
