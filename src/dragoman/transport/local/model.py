"""A client of a model on this machine."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from weakref import finalize

import msgspec

from dragoman.errors import ConfigError, ConnectError, InvalidInputError
from dragoman.providers.llamacpp import PROVIDER
from dragoman.providers.provider import Provider
from dragoman.transport.client import Client
from dragoman.transport.local.catalogue import Packaged
from dragoman.transport.local.fetching import Progress, fetch, is_kept, kept_at
from dragoman.transport.local.files import check_file, found
from dragoman.transport.local.servers import Server, Settings, current, hold, release
from dragoman.transport.local.stream_starts import MESSAGES, BegunReply, counted_start, is_stream
from dragoman.transport.local.templates import Template
from dragoman.transport.model_names import ModelName
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts
from dragoman.transport.rate_limits import Limits
from dragoman.transport.retries import Retries

_PLACE = "http://local.invalid"  # until the server has an address; RFC 6761: nobody's, ever
_LOCAL = PROVIDER.replace(name="local", base_url=f"{_PLACE}/v1", aliases=())


class LocalModel(Client):
    """A model that runs here: `smollm2`, which is fetched on first use, or any GGUF file.

    ```python
    async with LocalModel("smollm2") as model:          # or "~/models/qwen3-8b.gguf"
        response = await model.send("Where is the Old Bridge?")
    ```

    llama.cpp's own server runs it (`pip install 'dragoman[local]'`), in a process that is started
    on first use, listens on loopback, answers only us, and ends with us. All clients of a model
    with the same settings share it; the last one that is closed stops it. `dialect` says which of
    its languages is spoken: openai-chat, openai-responses or anthropic.
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
        """As the class says.

        Args:
            model: `smollm2`, or the path of a GGUF file.
            dialect: The dialect to speak with the server.
            context: The tokens of a conversation, at most; a model that was made for less has less.
            threads: To compute with; by default half of the processors that we may use.
            parallel: How many requests are answered at once; they share the context.
            template: A chat template (Jinja), in place of the file's own. For tools there must be
                one that mentions them: llama.cpp leaves them out otherwise. `smollm2` has ours.
            embeddings: Whether it is for embeddings, and for nothing else.
            verbose: Whether what llama.cpp has to say goes to stderr.
            fetch: Whether a model that is not here may be fetched from the package index.
            progress: Told how much has been fetched: `progress(bytes_here, bytes_in_all)`.
            timeouts: As in every client; loading the model counts as waiting for the first byte.
            retries: As in every client.
            limits: As in every client.
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
        """The model, as `local:` and what was named."""
        return f"local:{self._given}"

    def __repr__(self) -> str:
        return f"LocalModel({self._deployment.name.chat})"

    async def close(self) -> None:
        """Close the connections, and stop the server if nobody else uses it."""
        await self._local.close()


class LocalTransport:
    """Carries requests to a model's server; fetches the model and starts the server if need be."""

    def __init__(
        self, source: Packaged | Path, settings: Settings, *, may_fetch: bool,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._settings = settings
        self._may_fetch = may_fetch
        self._progress = progress
        from dragoman.transport.http import HttpTransport  # aiohttp takes its time

        self._http = HttpTransport()
        self._holding: finalize[..., LocalTransport] | None = None

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """Send a request; returns when the head of the reply is there."""
        await self._ensure_file(timeouts)
        server = self._server()
        address = await server.address(timeouts.first_byte)
        headers = {**request.headers, "Authorization": f"Bearer {server.key}"}
        url = address + request.url.removeprefix(_PLACE)
        message = msgspec.structs.replace(request, url=url, headers=headers)
        try:
            reply = await self._http.open(message, timeouts)
        except ConnectError as error:
            if error.sent is False:
                # It is dying, though not dead yet: the next attempt must not find it again.
                server.stop()
            raise
        if not url.endswith(MESSAGES) or not is_stream(reply):
            return reply
        return BegunReply(reply, partial(counted_start, self._http, message, timeouts))

    async def close(self) -> None:
        """Close the connections of this loop, and give up the server."""
        if self._holding is not None:
            self._holding()
            self._holding = None
        await self._http.close()

    def _server(self) -> Server:
        if self._holding is not None:
            return current(self._settings)
        # Clients that nobody closed give up their server when they are gone.
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
    """llama.cpp's server, with a model whose template we know or do not know."""
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
        f"{model.name} ({model.megabytes} MB, {model.licence}) has not been fetched yet, and"
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
        msg = f"{what} of a local model must be a whole number, one at least"
        raise InvalidInputError(msg)
    return number
