"""Models for tests and demonstrations: no key, no network, the same answer every time."""

from __future__ import annotations

from dragoman.agent.testing import TestModel
from dragoman.errors import NotRecorded
from dragoman.transport.echo import EchoModel
from dragoman.transport.replay import ReplayTransport
from dragoman.transport.scripted import ScriptedModel

__all__ = ["EchoModel", "NotRecorded", "ReplayTransport", "ScriptedModel", "TestModel"]
