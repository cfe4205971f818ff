"""Requests from servers: to the user (elicitation), to a model (sampling), for roots."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import mcp_types as types

from dragoman.agent.reprs import Shown
from dragoman.agent.thread_pool import in_thread
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, freeze_mapping
from dragoman.model.validation.problems import problems

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext

    from dragoman.mcp.connection import Connection
    from dragoman.mcp.sampling import Sampling

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
