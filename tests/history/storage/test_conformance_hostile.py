"""No name, id or text makes a backend confuse sessions or lose a byte."""

from __future__ import annotations

from dragoman.testing.conformance.stores.hostile import *  # noqa: F403 - the tests
