"""The direct transport: its connections, and the bytes that it writes."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError
from dragoman.transport.direct import DirectTransport
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body
from tests.transport.servers import Fault, Step, plain, serving

_LIMITS = Timeouts(connect=5, first_byte=5)


@pytest.mark.parametrize("more", [b"H", b"HTTP/1.1 200 OK\r\ncontent-", b"\x00garbage"])
async def test_surplus_bytes_after_a_response_are_discarded(more: bytes) -> None:
    """The connection isn't used again."""
    whole = b"".join(step for step in plain(b"one") if isinstance(step, bytes))
    first: list[Step] = [whole + more, Fault.KEEP]
    async with serving(first, plain(b"two")) as server:
        transport = DirectTransport()
        for expected in (b"one", b"two"):
            reply = await transport.open(HttpRequest(url=f"{server.url}/x", body=b"{}"), _LIMITS)
            assert await read_body(reply, 100) == expected
            await reply.close()
            kept = [each for idle in transport._idle.values() for each in idle if each.is_usable]
            assert len(kept) == (expected == b"two")
        await transport.close()


@pytest.mark.parametrize("value", ["a\r\nx-more: b", "\ud800", "\x00"])
async def test_an_invalid_header_is_a_config_error(value: str) -> None:
    """Before anything is sent; the value is not quoted."""
    transport = DirectTransport()
    request = HttpRequest(url="http://127.0.0.1:9/x", headers={"authorization": value}, body=b"")
    with pytest.raises(ConfigError, match="header"):
        await transport.open(request, _LIMITS)
    await transport.close()
