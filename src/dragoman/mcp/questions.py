"""Requests from servers: to the user (elicitation), to a model (sampling), for roots."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import mcp_types as types

from dragoman.agent.reprs import Shown
from dragoman.agent.thread_pool import in_thread
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.mcp.content import blocks_of, parts_of
from dragoman.model.frozen import EMPTY, freeze_mapping
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.model.validation.problems import problems
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model, open_model

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext

    from dragoman.mcp.connection import Connection

ApproveSampling = Callable[[Request], bool | Awaitable[bool]]

_REJECTED = -1  # as in the specification's example
_FAILED = types.INTERNAL_ERROR
_STOPS = {
    FinishReason.STOP: "endTurn",
    FinishReason.LENGTH: "maxTokens",
}


class Sampling:
    """Lets a server use your model: `MCPServer.stdio(…, sampling=Sampling(model, approve))`.

    `approve` is called before each request, with the `Request` that would be sent; True allows all
    requests, at your expense. Answers have at most `max_tokens` tokens, and a server gets at most
    `max_requests` of them. It can't choose the model, nor give it tools.
    """

    def __init__(
        self,
        model: str | Provider | Model,
        approve: ApproveSampling | Literal[True],
        *,
        max_tokens: int = 4_096,
        max_requests: int | None = 100,
    ) -> None:
        given: object = approve
        if given is not True and not callable(given):
            msg = "approve of Sampling must be True or a function that takes the request"
            raise InvalidInputError(msg)
        self.model: Model = open_model(model)
        self._owns_model = self.model is not model
        self._approve = approve
        self._max_tokens = max_tokens
        self._left = inf if max_requests is None else max_requests

    def __repr__(self) -> str:
        return f"Sampling({self.model.name})"

    async def answer(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The model's answer; or an error without details of what went wrong here."""
        if self._left <= 0:
            return types.ErrorData(code=_REJECTED, message="No more sampling requests are allowed")
        self._left -= 1  # now: others may come while this one waits for approval
        is_sent = False
        try:
            request = self._request(params)
            if not await self._is_approved(request):
                return types.ErrorData(code=_REJECTED, message="User rejected sampling request")
            is_sent = True
            response = await self.model.send(request)
            blocks = blocks_of(response.message.parts)
        except DragomanError as error:
            message = f"The model request failed ({type(error).__name__})"
            return types.ErrorData(code=_FAILED, message=message)
        finally:
            if not is_sent:
                self._left += 1
        text = "".join(each.text for each in blocks if isinstance(each, types.TextContent))
        others = [each for each in blocks if not isinstance(each, types.TextContent)]
        first = others[0] if others and not text else types.TextContent(type="text", text=text)
        stop = _STOPS.get(response.finish) if response.finish is not None else None
        name = response.model or self.model.name
        return types.CreateMessageResult(
            role="assistant", content=first, model=name, stop_reason=stop
        )

    async def _is_approved(self, request: Request) -> bool:
        if isinstance(self._approve, bool):
            return self._approve
        answer = self._approve(request)
        return (await answer if isawaitable(answer) else answer) is True

    def _request(self, params: types.CreateMessageRequestParams) -> Request:
        messages = tuple(_message(each) for each in params.messages)
        system = (Text(params.system_prompt),) if params.system_prompt else ()
        settings: dict[str, Any] = {"max_tokens": max(1, min(params.max_tokens, self._max_tokens))}
        if params.temperature is not None:
            settings["temperature"] = params.temperature
        if params.stop_sequences:
            settings["stop"] = tuple(params.stop_sequences)
        return Request(system=system, messages=messages).with_settings(**settings)

    async def close(self) -> None:
        """Close the model, unless it was passed in open."""
        if self._owns_model:
            await self.model.close()


def _message(given: types.SamplingMessage) -> Message:
    blocks = given.content if isinstance(given.content, list) else [given.content]
    parts = [part for block in blocks for part in parts_of(block)]
    role = Role.ASSISTANT if given.role == "assistant" else Role.USER
    return Message(role, parts)


_log = logging.getLogger("dragoman.mcp")
_REFUSED = types.ErrorData(code=types.INVALID_REQUEST, message="The client refused")


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Question(Shown):
    """A question of a server to the user. Show who asks: `server` is the name that you gave it."""

    server: str
    message: str
    schema: Mapping[str, Any] = EMPTY
    """JSON Schema of the answer, an object of plain values; empty if there is a `url`."""
    url: str | None = None
    """A URL that the user should visit, for data that must not pass through the client. It comes
    from the server, unchecked, and is never opened here."""

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.message)} chars"


Answer: TypeAlias = Mapping[str, Any] | bool | None
"""A mapping: the answer; True: agreed (for a URL); False: declined; None: no decision."""
Elicit: TypeAlias = Callable[[Question], Answer | Awaitable[Answer]]
T = TypeVar("T")
RootLike: TypeAlias = str | PathLike[str]


class Questions:
    """Answers the requests of one server."""

    def __init__(
        self,
        server: str,
        *,
        elicit: Elicit | None,
        sampling: Sampling | None,
        roots: Iterable[RootLike] | None,
    ) -> None:
        given: object = elicit
        if given is not None and not callable(given):
            msg = "elicit must be a function that takes a Question"
            raise InvalidInputError(msg)
        self._server = server
        self._elicit = elicit
        self.sampling = sampling
        self.roots = None if roots is None else [root_of(each) for each in roots]
        """The roots for the server; None: it may not ask."""

    def options(self, connection: Connection) -> dict[str, Any]:
        """The SDK's callbacks; the server is only told of those that are set."""

        async def sample(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK's
            params: types.CreateMessageRequestParams,
        ) -> types.CreateMessageResult | types.ErrorData:
            assert self.sampling is not None  # noqa: S101 - it is offered only then
            with connection.answering():
                return await _safely(self.sampling.answer(params))

        async def elicit(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK's
            params: types.ElicitRequestParams,
        ) -> types.ElicitResult | types.ErrorData:
            with connection.answering():
                return await _safely(self._elicited(params))

        async def list_roots(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK's
        ) -> types.ListRootsResult:
            return types.ListRootsResult(roots=self.roots or [])

        found: dict[str, Any] = {}
        if self.sampling is not None:
            found["sampling_callback"] = sample
        if self._elicit is not None:
            found["elicitation_callback"] = elicit
        if self.roots is not None:
            found["list_roots_callback"] = list_roots
        return found

    async def _elicited(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert self._elicit is not None  # noqa: S101 - it is offered only then
        schema, url = EMPTY, None
        if isinstance(params, types.ElicitRequestFormParams):
            schema = freeze_mapping(params.requested_schema)
        else:
            url = params.url
        question = Question(server=self._server, message=params.message, schema=schema, url=url)
        if iscoroutinefunction(self._elicit):
            answer = await self._elicit(question)
        else:  # it may wait for user input
            answer = await in_thread(self._elicit, question)
        if isawaitable(answer):
            answer = await answer
        return _result(question, answer)


def _result(question: Question, answer: Any) -> types.ElicitResult:
    if answer is None:
        return types.ElicitResult(action="cancel")
    if isinstance(answer, Mapping):
        if question.url is None and not problems(question.schema, answer):
            return types.ElicitResult(action="accept", content=dict(answer))
        _log.warning("an answer to a question of an MCP server does not match its schema")
        return types.ElicitResult(action="cancel")
    if answer is True and question.url is not None:
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="decline")


async def _safely(answer: Awaitable[T]) -> T | types.ErrorData:
    """The answer; an exception in the user's function becomes a refusal, and is logged."""
    try:
        return await answer
    except Exception as error:  # noqa: BLE001 - the server must not be told what went wrong
        _log.warning("a request of an MCP server was refused: %s", type(error).__name__)
        return _REFUSED


def root_of(given: RootLike) -> types.Root:
    """A root for a server: a path, or a `file:` URI."""
    if isinstance(given, str) and given.startswith("file:"):
        return types.Root.model_validate({"uri": given})
    try:
        path = Path(given).expanduser().resolve()
    except (OSError, RuntimeError, TypeError, ValueError):
        msg = "a root of an MCP server must be the path of a directory"
        raise InvalidInputError(msg) from None
    return types.Root.model_validate({"uri": path.as_uri(), "name": path.name or str(path)})
