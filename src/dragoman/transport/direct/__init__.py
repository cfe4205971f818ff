"""HTTP/1.1 directly on sockets: what the gateway sends upstream, at a third of aiohttp's cost.

`DirectTransport` handles plain GET and POST requests over keep-alive connections, parsed by
httptools (installed with the extra `gateway`). Everything else (proxies, streamed uploads,
credentials in the URL, other methods) goes through `HttpTransport`. Both behave alike: the same
tests run on both.
"""

from dragoman.transport.direct.pool import DirectTransport

__all__ = ["DirectTransport"]
