"""A generation request in the client's dialect, parsed only as far as routing needs.

Most requests are translated from bytes to bytes (`wire.lane`), so only the top level is parsed: the
model, `stream`, and the settings that a response repeats. The conversation stays unparsed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Raw

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.large_bodies import MAX_MESSAGES, check_messages, translated_aside
from dragoman.model.requests import Request
from dragoman.providers.translation import lane_of
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.error_reporting import reported
from dragoman.wire.front import AgentForm, front_form
from dragoman.wire.known_fields import Accepted, accepted, known_fields
from dragoman.wire.lane.heads import sample_of
from dragoman.wire.losses import Loss

_split = msgspec.json.Decoder(dict[str, Raw]).decode
_value = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_MAX_CACHED, _MAX_CACHED_BYTES = 512, 16 * 1024 * 1024
_EMPTY = Raw(b"[]")
_MAX_NAME_LENGTH = 512
_ANY_AGENT = AgentForm()


class ClientRequest:
    """The body of a generation request, in the client's dialect."""

    def __init__(
        self,
        front: str,
        body: bytes,
        *,
        model: str | None = None,
        stream: bool | None = None,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        agent: AgentForm = _ANY_AGENT,
    ) -> None:
        """Pass `model` and `stream` where the path determines them."""
        self.front: Dialect = dialect(front)
        self.path = path
        self.headers = headers or None
        self.body, self.fields, self.losses = accepted_fields(self.front, body)
        if model is not None and "model" in self.fields:
            self._drop_model(model)
        if len(body) > 2 * MAX_MESSAGES:
            self._check_messages()
        self.model = model if model is not None else _model(self.fields.get("model"))
        self.stream = stream if stream is not None else self._streams()
        self.agent = agent
        self.takes_pieces = agent.takes_pieces or not self.stream
        """Whether the client reads tool calls that are streamed in pieces."""
        if self.stream and agent.stream_fields:
            added = {name: Raw(value) for name, value in agent.stream_fields.items()}
            self.fields = {**added, **self.fields}
            self.body = _encode(self.fields)

    def _drop_model(self, named: str) -> None:
        """Leave out the field beside a path that names the model: servers may prefer either."""
        given = _read(self.fields["model"])
        if not isinstance(given, str) or given.removeprefix("models/") != named:
            reason = "left out: the path names the model"
            self.losses = (*self.losses, Loss("model", reason))
        self.fields = {name: raw for name, raw in self.fields.items() if name != "model"}
        self.body = _encode(self.fields)

    def without(self, names: Collection[str]) -> Self:
        """The same request without some of its fields."""
        made = copy(self)
        for kept in ("settings", "request"):
            made.__dict__.pop(kept, None)
        made.fields = {name: raw for name, raw in self.fields.items() if name not in names}
        made.body = _encode(made.fields)
        return made

    def __repr__(self) -> str:
        return f"<client request in {self.front.name}, {len(self.body)} bytes>"

    def _check_messages(self) -> None:
        lane = lane_of(self.front.name)
        raw = None if lane is None else self.fields.get(lane.field)
        if raw is not None:
            check_messages(bytes(raw))

    def _streams(self) -> bool:
        raw = self.fields.get("stream")
        value = None if raw is None else _read(raw)
        if value is not None and not isinstance(value, bool):
            msg = "`stream` must be true or false"
            raise InvalidRequest(msg, status=400, param="stream")
        return front_form(self.front).streams_by_default if value is None else value

    @cached_property
    def settings(self) -> Request:
        """The request without its conversation."""
        lane = lane_of(self.front.name)
        if lane is None or lane.field not in self.fields:
            return self.request
        return _BARE.find(self, _encode({**self.fields, lane.field: _EMPTY}))

    async def decoded_settings(self) -> Request:
        """Like `settings`, without blocking other requests for long."""
        lane = lane_of(self.front.name)
        if lane is None or lane.field not in self.fields:
            return await self.decoded()
        bare = _encode({**self.fields, lane.field: _EMPTY})
        if _BARE.known(self, bare) is None:
            return await translated_aside(bare, lambda: self.settings)
        return self.settings

    @cached_property
    def request(self) -> Request:
        """The complete request; raises an error meant for the client if it is invalid."""
        return self.read(self.body)

    async def decoded(self) -> Request:
        """Like `request`, without blocking other requests for long."""
        if "request" in self.__dict__:
            return self.request
        return await translated_aside(self.body, lambda: self.request)

    def read(self, body: bytes) -> Request:
        """Decode a body of this request's dialect."""
        return self.reader(body)

    @property
    def reader(self) -> RequestReader:
        """What decodes bodies like this one, without holding it."""
        return RequestReader(self.front, self.path, self.headers)


class RequestReader(NamedTuple):
    """Decodes bodies that arrived at the same path with the same headers."""

    front: Dialect
    path: str | None
    headers: Mapping[str, str] | None

    def __call__(self, body: bytes) -> Request:
        """Decode a body."""
        try:
            return self.front.decode_request(body, path=self.path, headers=self.headers)
        except DragomanError as error:
            problem = reported(error)
        raise problem


class _BareRequests:
    """Cache of requests without their conversation, by bytes: clients repeat their settings."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[bytes, Request]] = {}
        self._size = 0

    def known(self, client_request: ClientRequest, bare: bytes) -> Request | None:
        kept = self._kept.get(_bare_key(client_request, bare))
        return kept[1] if kept is not None and kept[0] == bare else None

    def find(self, client_request: ClientRequest, bare: bytes) -> Request:
        found = self.known(client_request, bare)
        if found is not None:
            return found
        try:
            found = client_request.read(bare)
        except DragomanError:
            return client_request.request  # raises for the real body, or decodes it after all
        self._keep(_bare_key(client_request, bare), bare, found)
        return found

    def _keep(self, key: Any, bare: bytes, request: Request) -> None:
        if len(self._kept) >= _MAX_CACHED or self._size + len(bare) > _MAX_CACHED_BYTES:
            self._kept.clear()
            self._size = 0
        self._size += len(bare)
        self._kept[key] = (bare, request)


_BARE = _BareRequests()


def _bare_key(client_request: ClientRequest, bare: bytes) -> tuple[Any, ...]:
    front, headers = client_request.front.name, _named(client_request.headers)
    return front, client_request.path, sample_of(bare), headers


def _named(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return () if not headers else tuple(headers.items())


def accepted_fields(front: Dialect, body: bytes) -> Accepted:
    """Split a body into unparsed fields, without those that only look like known ones.

    Raises the dialect's own error if it isn't an object.
    """
    try:
        return accepted(body, _split(body), known_fields(front))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        front.decode_request(body)
    except DragomanError as error:
        problem = reported(error)
    else:
        problem = InvalidRequest("the request body must be a JSON object", status=400)
    raise problem


def _model(raw: Raw | None) -> str | None:
    found = None if raw is None else _read(raw)
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= _MAX_NAME_LENGTH:
        msg = f"`model` must be a string of 1 to {_MAX_NAME_LENGTH} characters"
        raise InvalidRequest(msg, status=400, param="model")
    return found


def _read(value: Raw) -> Any:
    try:
        return _value(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    msg = "the request body is not valid JSON"
    raise InvalidRequest(msg, status=400)
