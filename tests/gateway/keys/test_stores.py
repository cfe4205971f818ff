"""The behaviour of every key store: admission, charges, leases, usage."""

from __future__ import annotations

from dragoman.testing.conformance.key_stores import *  # noqa: F403 - the tests
