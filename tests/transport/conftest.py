"""The two network transports; tests of the network run on both."""

from __future__ import annotations

import pytest

from dragoman.transport.direct import DirectTransport
from dragoman.transport.http import HttpTransport


@pytest.fixture(params=[HttpTransport, DirectTransport], ids=["aiohttp", "direct"])
def network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients use one transport, then the other."""
    monkeypatch.setattr("dragoman.transport.client._network", request.param)
