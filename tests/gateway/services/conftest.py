"""A gateway before a scripted upstream of each dialect; and one that knows all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from dragoman.gateway.records import RequestRecord
from tests.gateway.running import Serving, routed, running
from tests.gateway.services.upstreams import KINDS, Upstream, serving


class Stage:
    """Upstreams, and a gateway before each that asks no other."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.upstreams: dict[str, Upstream] = {}
        self._gateways: dict[str, Serving] = {}
        self.finished: dict[str, list[RequestRecord]] = {}

    def upstream(self, dialect: str) -> Upstream:
        """A server of a dialect."""
        if dialect not in self.upstreams:
            self.upstreams[dialect] = self._stack.enter_context(serving(dialect))
        return self.upstreams[dialect]

    def before(self, *dialects: str) -> Serving:
        """A gateway whose only route leads to servers of these dialects, in turn."""
        name = ",".join(dialects)
        if name not in self._gateways:
            places = [self.upstream(each).place() for each in dialects]
            made = self._stack.enter_context(running(routed(*places)))
            self.finished[name] = []
            made.gateway.observers.append(self.finished[name].append)
            self._gateways[name] = made
        return self._gateways[name]

    def last(self, *dialects: str) -> RequestRecord:
        """What such a gateway noted about its last request."""
        # It notes after the client has its answer, and before it serves another request.
        httpx.get(f"{self.before(*dialects).url}/health")
        found = self.finished[",".join(dialects)]
        return [record for record in found if record.kind != "health"][-1]


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """Shared by all tests here: each looks at the last requests only."""
    with ExitStack() as stack:
        yield Stage(stack)


@pytest.fixture(params=sorted(KINDS))
def back(request: pytest.FixtureRequest) -> str:
    """Each of the dialects behind the gateway."""
    return str(request.param)
