"""Clients that disconnect: at every point, the request to the provider ends with them."""

from __future__ import annotations

import json
import socket
import struct
import time

import pytest

from tests.environment import PATIENCE
from tests.gateway.abuse.stage import CANARY, Stage, request
from tests.gateway.client_requests import body_for, path_for

pytestmark = pytest.mark.whole

POINTS = ("waits", "waits_after_head", "waits_in_stream")
COUNT = 4


@pytest.mark.parametrize("how", POINTS)
@pytest.mark.parametrize("back", ["own", "anthropic", "openai-chat"])
@pytest.mark.parametrize("way", ["close", "reset"])
def test_disconnecting_cancels_the_upstream_request(
    stage: Stage, front: str, back: str, how: str, way: str
) -> None:
    """For every client that disconnects, one upstream request ends, at any point of the answer."""
    model = f"{front if back == 'own' else back}.{how}"
    body = json.dumps(body_for(front, CANARY, stream=True, model=model)).encode()
    data = request(path_for(front, stream=True, model=model), body)
    before = stage.upstream.cancelled
    held = [stage.connect() for _ in range(COUNT)]
    for each in held:
        each.sendall(data)
    _until(lambda: stage.upstream.under_way == COUNT)
    if how == "waits_in_stream":
        for each in held:
            assert each.recv(65536)
    for each in held:
        if way == "reset":
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        each.close()
    _until(lambda: stage.upstream.under_way == 0)
    _until(lambda: stage.upstream.cancelled == before + COUNT)
    stage.serves(front)


def test_disconnecting_within_a_request(stage: Stage, front: str) -> None:
    """A client that disconnects before its request is complete causes no upstream request."""
    body = json.dumps(body_for(front, CANARY)).encode()
    data = request(path_for(front), body)
    asked = len(stage.upstream.asked)
    for size in range(1, len(data), 7):
        with stage.connect() as connection:
            connection.sendall(data[:size])
    stage.serves(front)
    assert len(stage.upstream.asked) == asked + 1


def _until(is_so: object) -> None:
    assert callable(is_so)
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)
