"""What a client asks: its body, and what of it has to be known before it is translated.

Most requests go from bytes to bytes (`wire.lane`). The model and whether to stream are read out of
the top level alone; so are the settings that an answer repeats, without the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.model.requests import Request
from dragoman.providers.translation import lane_of
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.error_reporting import reported
from dragoman.wire.front import AgentForm, front_form
from dragoman.wire.lane.heads import sample_of

_split = msgspec.json.Decoder(dict[str, Raw]).decode
_value = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_MAX_CACHED, _MAX_CACHED_BYTES = 512, 16 * 1024 * 1024
_EMPTY = Raw(b"[]")
_MAX_NAME_LENGTH = 512
_ANY_AGENT = AgentForm()


class ClientRequest:
    """A request for an answer, in the dialect of its client."""

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
        """The model and whether to stream are given where the path says them."""
        self.front: Dialect = dialect(front)
        self.body = body
        self.path = path
        self.headers = headers or None
        self.fields = _fields(self.front, body)
        self.model = model if model is not None else _model(self.fields.get("model"))
        self.stream = stream if stream is not None else self._streams()
        self.takes_pieces = agent.takes_pieces or not self.stream
        """Whether calls may come in pieces."""
        if self.stream and agent.stream_fields:
            added = {name: Raw(value) for name, value in agent.stream_fields.items()}
            self.fields = {**added, **self.fields}
            self.body = _encode(self.fields)

    def __repr__(self) -> str:
        return f"<client request in {self.front.name}, {len(self.body)} bytes>"

    def _streams(self) -> bool:
        given = self.fields.get("stream")
        said = None if given is None else _read(given)
        if said is not None and not isinstance(said, bool):
            msg = "`stream` must be true or false"
            raise InvalidRequest(msg, status=400, param="stream")
        return front_form(self.front).streams_by_default if said is None else said

    @cached_property
    def settings(self) -> Request:
        """The request without its conversation."""
        lane = lane_of(self.front.name)
        if lane is None or lane.field not in self.fields:
            return self.request
        bare = {**self.fields, lane.field: _EMPTY}
        return _BARE.find(self, _encode(bare))

    @cached_property
    def request(self) -> Request:
        """The whole request; raises what is wrong with it, in words for the client."""
        return self.read(self.body)

    def read(self, body: bytes) -> Request:
        """The request in such a body."""
        try:
            return self.front.decode_request(body, path=self.path, headers=self.headers)
        except DragomanError as error:
            problem = reported(error)
        raise problem


class _BareRequests:
    """Requests without their conversations, known by their bytes: clients send the same ones."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[bytes, Request]] = {}
        self._size = 0

    def find(self, client_request: ClientRequest, bare: bytes) -> Request:
        key = (
            client_request.front.name,
            client_request.path,
            sample_of(bare),
            _named(client_request.headers),
        )
        kept = self._kept.get(key)
        if kept is not None and kept[0] == bare:
            return kept[1]
        try:
            found = client_request.read(bare)
        except DragomanError:
            return client_request.request  # says it of the body itself, or knows better
        self._keep(key, bare, found)
        return found

    def _keep(self, key: Any, bare: bytes, request: Request) -> None:
        if len(self._kept) >= _MAX_CACHED or self._size + len(bare) > _MAX_CACHED_BYTES:
            self._kept.clear()
            self._size = 0
        self._size += len(bare)
        self._kept[key] = (bare, request)


_BARE = _BareRequests()


def _named(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return () if not headers else tuple(headers.items())


def _fields(front: Dialect, body: bytes) -> dict[str, Raw]:
    """The fields of a body, unread; raises what the dialect says of one that has none."""
    try:
        return _split(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        front.decode_request(body)
    except DragomanError as error:
        problem = reported(error)
    else:
        problem = InvalidRequest("the body of the request must be a JSON object", status=400)
    raise problem


def _model(given: Raw | None) -> str | None:
    found = None if given is None else _read(given)
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= _MAX_NAME_LENGTH:
        msg = f"`model` must be a text of at most {_MAX_NAME_LENGTH} characters"
        raise InvalidRequest(msg, status=400, param="model")
    return found


def _read(value: Raw) -> Any:
    try:
        return _value(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    msg = "the body of the request is not valid JSON"
    raise InvalidRequest(msg, status=400)
