"""Models and transports for tests and demos: no API key, no network, deterministic responses."""

from __future__ import annotations

from dragoman.agent.testing import TestModel
from dragoman.errors import NotRecorded
from dragoman.transport.echo import EchoModel
from dragoman.transport.replay import ReplayTransport
from dragoman.transport.scripted import ScriptedModel

__all__ = ["EchoModel", "NotRecorded", "ReplayTransport", "ScriptedModel", "TestModel"]
